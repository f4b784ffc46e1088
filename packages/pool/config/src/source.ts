import { isMapping } from "@nodeyard/driver";
import { Findings } from "./findings.ts";
import { SourceDocument } from "./yaml/document.ts";
import { plain, valuesOf } from "./yaml/values.ts";

/** Only these variables are filled in. */
const PREFIX = "NODEPOOL_";
/** What YAML 1.1 has no place for (section 5.1), which the old readers refuse. */
const UNACCEPTABLE = /[^\t\n\r\x20-\x7E\x85\xA0-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/u;

/** A file after substitution and parsing. One for each file and reading. */
export interface Source {
  readonly findings: Findings;
  /** With floats and dates kept distinct, for the validator; undefined after an error. */
  readonly strict: Readonly<Record<string, unknown>> | undefined;
  /** The same, plain. */
  readonly raw: Readonly<Record<string, unknown>> | undefined;
}

/**
 * Reads one text. Syntax errors are findings; a file that is no mapping is one as well, but for an empty one with `mayBeEmpty`.
 * Pure; never throws.
 */
export function readSource(
  file: string,
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  options: { readonly mayBeEmpty: boolean } = { mayBeEmpty: false },
): Source {
  const filled = substitute(text, env);
  const document = new SourceDocument(filled);
  const { value, problems, notes } = valuesOf(document);
  const findings = new Findings(file, document, value);
  for (const { name, offset } of leftovers(filled)) {
    const message = `%(${name}) stays as it is, because the environment has no ${name}; set it`;
    findings.add("warning", "syntax", [], message, document.at(offset));
  }
  const wrong = [...document.problems, ...problems];
  const odd = filled.search(UNACCEPTABLE);
  if (odd >= 0) {
    const code = filled.codePointAt(odd)!.toString(16).toUpperCase().padStart(4, "0");
    const message = `the character U+${code} is not allowed in YAML; remove it, or write it as an escape in double quotes`;
    wrong.push({ ...document.at(odd), message });
  }
  for (const { message, ...at } of wrong) findings.add("error", "syntax", [], oneLine(message), at);
  for (const { path, message, ...at } of notes) findings.add("warning", "effect", path, message, at);
  // A file with a syntax error has no value at all: half of it could mean something else.
  const none = { findings, strict: undefined, raw: undefined };
  if (wrong.length > 0) return none;
  if (value === null && options.mayBeEmpty) return { findings, strict: {}, raw: {} };
  if (!isMapping(value)) {
    const what = value === null ? "the file is empty" : "the file is not a mapping";
    findings.add("error", "syntax", [], `${what}; write keys and values, at least {}`, document.at(0));
    return none;
  }
  return { findings, strict: value, raw: plain(value) as Record<string, unknown> };
}

/** The YAML library's messages may have several lines; a finding is one. */
function oneLine(message: string): string {
  return message.replace(/\s+/g, " ").trim();
}

/**
 * Puts the values of `NODEPOOL_*` variables in place of `%(NODEPOOL_*)`, in the text before it is parsed (docs/contract/config.md,
 * "Environment"): one scan per variable, in the order of the environment.
 */
export function substitute(text: string, env: Readonly<Record<string, string | undefined>>): string {
  let result = text;
  for (const [name, value] of Object.entries(env)) {
    if (name.startsWith(PREFIX) && value !== undefined) result = result.replaceAll(`%(${name})`, () => value);
  }
  return result;
}

/** Placeholders that no variable filled, with the offsets at which they stand. */
function leftovers(text: string): readonly { readonly name: string; readonly offset: number }[] {
  return Array.from(text.matchAll(/%\((NODEPOOL_[^)\n]*)\)/g), (match) => ({
    name: match[1] as string,
    offset: match.index,
  }));
}
