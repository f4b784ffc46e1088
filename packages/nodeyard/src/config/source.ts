import { isMapping } from "@nodeyard/driver";
import { Findings } from "./findings.ts";
import { SourceDocument } from "./yaml/document.ts";
import { plain, valuesOf } from "./yaml/values.ts";

const PREFIX = "NODEPOOL_";

/** A file after substitution and parsing. */
export interface Source {
  readonly findings: Findings;
  /** With floats and dates kept distinct, for the validator; undefined after an error. */
  readonly strict: Readonly<Record<string, unknown>> | undefined;
  /** The same, plain. */
  readonly raw: Readonly<Record<string, unknown>> | undefined;
}

/** Reads one text. Syntax errors are findings; a file that is no mapping is one as well. */
export function readSource(
  file: string,
  text: string,
  env: Readonly<Record<string, string | undefined>>,
  options: { readonly mayBeEmpty: boolean } = { mayBeEmpty: false },
): Source {
  const filled = substitute(text, env);
  const document = new SourceDocument(filled);
  const { value, problems } = valuesOf(document);
  const findings = new Findings(file, document, value);
  for (const { name, offset } of leftovers(filled)) {
    const message = `%(${name}) stays as it is, because the environment has no ${name}; set it`;
    findings.addAt(document.at(offset), "warning", "syntax", "", message);
  }
  const wrong = [...document.problems, ...problems];
  for (const { message, ...at } of wrong) findings.addAt(at, "error", "syntax", "", oneLine(message));
  const none = { findings, strict: undefined, raw: undefined };
  if (wrong.length > 0) return none;
  if (value === null && options.mayBeEmpty) return { findings, strict: {}, raw: {} };
  if (!isMapping(value)) {
    const what = value === null ? "the file is empty" : "the file is not a mapping";
    findings.addAt(document.at(0), "error", "syntax", "", `${what}; write keys and values, at least {}`);
    return none;
  }
  return { findings, strict: value, raw: plain(value) as Record<string, unknown> };
}

function oneLine(message: string): string {
  return message.replace(/\s+/g, " ").trim();
}

/**
 * Puts the values of `NODEPOOL_*` variables in place of `%(NODEPOOL_*)`, in the text before it is parsed (docs/contract/config.md,
 * "Environment"): one scan per variable, in the order of the environment.
 */
function substitute(text: string, env: Readonly<Record<string, string | undefined>>): string {
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
