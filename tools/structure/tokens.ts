export type TokenKind = "word" | "string" | "number" | "regex" | "mark";

export interface Token {
  readonly kind: TokenKind;
  /** A word's or mark's own text; for a string the text between its quotes, with escapes as written. */
  readonly text: string;
  /** Counted from 1. */
  readonly line: number;
  /** The text of the doc comment that stands before this token. */
  readonly doc?: string;
}

const WORD = /[\p{ID_Start}$_#][\p{ID_Continue}$\u200c\u200d]*/uy;
const NUMBER = /\d[\w.]*|\.\d[\w]*/y;
/** After these words a slash starts a regular expression. */
const BEFORE_REGEX = new Set(
  "await case delete do else in instanceof new of return throw typeof void yield".split(" "),
);

/**
 * Splits TypeScript into words, strings and single-character marks; comments are dropped, and the code inside `${}` of
 * a template counts as code. TypeScript 7 has no stable scanner to call, and the checks need no more than this.
 */
export function tokenize(source: string): Token[] {
  return new Tokenizer(source).run();
}

class Tokenizer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  /** For each open brace, whether it is the `${` of a template. */
  readonly #braces: boolean[] = [];
  #at = 0;
  #line = 1;
  #doc: string | undefined;

  constructor(source: string) {
    this.#source = source;
  }

  run(): Token[] {
    if (this.#source.startsWith("#!")) this.#to(this.#endOfLine());
    while (this.#at < this.#source.length) this.#step();
    return this.#tokens;
  }

  #step(): void {
    const source = this.#source;
    const char = source[this.#at]!;
    if (/\s/.test(char)) this.#to(this.#at + 1);
    else if (source.startsWith("//", this.#at)) this.#to(this.#endOfLine());
    else if (source.startsWith("/*", this.#at)) this.#comment();
    else if (char === '"' || char === "'") this.#quoted(char);
    else if (char === "`") this.#template(this.#at + 1);
    else if (!this.#wordOrNumber() && !(char === "/" && this.#regexMayStart() && this.#regex()))
      this.#mark(char);
  }

  #wordOrNumber(): boolean {
    const word = this.#match(WORD);
    const text = word ?? this.#match(NUMBER);
    if (text === undefined) return false;
    this.#push(word === undefined ? "number" : "word", text, this.#at + text.length);
    return true;
  }

  #mark(char: string): void {
    if (char === "{") this.#braces.push(false);
    if (char === "}" && this.#braces.pop()) this.#template(this.#at + 1);
    else this.#push("mark", char, this.#at + 1);
  }

  #comment(): void {
    const found = this.#source.indexOf("*/", this.#at + 2);
    const end = found < 0 ? this.#source.length : found + 2;
    const text = this.#source.slice(this.#at, end);
    this.#to(end);
    if (text.startsWith("/**")) this.#doc = plainText(text);
  }

  #quoted(quote: string): void {
    const start = this.#at + 1;
    let end = start;
    while (end < this.#source.length && this.#source[end] !== quote && this.#source[end] !== "\n")
      end += this.#source[end] === "\\" ? 2 : 1;
    this.#push("string", this.#source.slice(start, end), end + 1);
  }

  /** From after a backtick or after the brace that ends a substitution, to the next substitution or the end. */
  #template(start: number): void {
    let end = start;
    while (end < this.#source.length && this.#source[end] !== "`" && !this.#source.startsWith("${", end))
      end += this.#source[end] === "\\" ? 2 : 1;
    const substitution = this.#source[end] === "$";
    if (substitution) this.#braces.push(true);
    this.#push("string", this.#source.slice(start, end), end + (substitution ? 2 : 1));
  }

  #regexMayStart(): boolean {
    const last = this.#tokens.at(-1);
    if (last === undefined) return true;
    if (last.kind === "word") return BEFORE_REGEX.has(last.text);
    return last.kind === "mark" && last.text !== ")" && last.text !== "]" && last.text !== "}";
  }

  #regex(): boolean {
    let inClass = false;
    for (let end = this.#at + 1; end < this.#source.length; end++) {
      const char = this.#source[end];
      if (char === "\n") return false;
      if (char === "\\") end++;
      else if (char === "[") inClass = true;
      else if (char === "]") inClass = false;
      else if (char === "/" && !inClass) {
        while (/[a-z]/.test(this.#source[end + 1] ?? "")) end++;
        this.#push("regex", this.#source.slice(this.#at, end + 1), end + 1);
        return true;
      }
    }
    return false;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source)?.[0];
  }

  #endOfLine(): number {
    const end = this.#source.indexOf("\n", this.#at);
    return end < 0 ? this.#source.length : end;
  }

  #push(kind: TokenKind, text: string, next: number): void {
    const doc = this.#doc;
    this.#doc = undefined;
    this.#tokens.push({ kind, text, line: this.#line, ...(doc === undefined ? {} : { doc }) });
    this.#to(next);
  }

  #to(next: number): void {
    for (let at = this.#at; at < next; at++) if (this.#source[at] === "\n") this.#line++;
    this.#at = next;
  }
}

function plainText(comment: string): string {
  return comment
    .slice(3, -2)
    .split("\n")
    .map((line) => line.replace(/^\s*\*?\s?/, "").trimEnd())
    .join(" ")
    .trim();
}
