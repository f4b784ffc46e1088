/** One `"key": value` in an object's text. `start` and `end` are the offsets of the value. */
export interface Member {
  readonly key: string;
  readonly start: number;
  readonly end: number;
}

const QUOTE = 34;
const BACKSLASH = 92;

/**
 * The members of the outermost object of `text`, in order and with duplicates. Values are not parsed. The text must be valid: the
 * caller has parsed it before, and this function only finds offsets.
 */
export function members(text: string): Member[] {
  const found: Member[] = [];
  let at = skipSpace(text, 0) + 1;
  for (;;) {
    at = skipSpace(text, at);
    if (text.charCodeAt(at) !== QUOTE) return found;
    const keyEnd = stringEnd(text, at);
    const plain = text.slice(at + 1, keyEnd - 1);
    const key: string = plain.includes("\\") ? JSON.parse(text.slice(at, keyEnd)) : plain;
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = valueEnd(text, start);
    found.push({ key, start, end });
    at = skipSpace(text, end);
    if (text.charCodeAt(at) !== 44 /* , */) return found;
    at++;
  }
}

function skipSpace(text: string, from: number): number {
  let at = from;
  for (let code = text.charCodeAt(at); code === 32 || code === 10 || code === 13 || code === 9; ) {
    code = text.charCodeAt(++at);
  }
  return at;
}

/** The offset after the closing quote of the string that opens at `open`. */
function stringEnd(text: string, open: number): number {
  let close = text.indexOf('"', open + 1);
  while (isEscaped(text, close)) close = text.indexOf('"', close + 1);
  return close + 1;
}

function isEscaped(text: string, quote: number): boolean {
  let at = quote - 1;
  while (text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - at) % 2 === 0;
}

function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return stringEnd(text, start);
  if (first === 91 /* [ */ || first === 123 /* { */) return nestedEnd(text, start);
  return scalarEnd(text, start);
}

function scalarEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    // A comma, a closing brace or bracket, or white space ends a number or a literal.
    if (code === 44 || code === 125 || code === 93 || code <= 32 || Number.isNaN(code)) return at;
    at++;
  }
}

function nestedEnd(text: string, start: number): number {
  let depth = 0;
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(text, at);
      continue;
    }
    if (code === 91 || code === 123) depth++;
    else if ((code === 93 || code === 125) && --depth === 0) return at + 1;
    else if (Number.isNaN(code)) return at;
    at++;
  }
}
