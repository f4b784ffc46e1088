import { YamlDate, YamlFloat } from "@nodeyard/driver";
import { valueAt } from "@nodeyard/runtime";
import type { z } from "zod";
import type { Finding } from "./types.ts";
import type { Position, SourceDocument } from "./yaml/document.ts";

export type Path = readonly (string | number)[];

/** Collects the findings of one file with their places; equal findings are kept once. */
export class Findings {
  readonly file: string;
  readonly all: Finding[] = [];
  readonly #document: SourceDocument;
  readonly #root: unknown;
  readonly #known = new Set<string>();

  constructor(file: string, document: SourceDocument, root: unknown) {
    this.file = file;
    this.#document = document;
    this.#root = root;
  }

  /** `at` where the place is not that of the value: its key stands there twice, or no value could be read. */
  add(
    severity: Finding["severity"],
    source: Finding["source"],
    steps: Path,
    said: string,
    at: Position = this.#document.locate(steps),
  ): void {
    const path = nameOf(steps, this.#root);
    const message = this.#sentence(steps, said);
    const key = `${severity} ${source} ${at.line} ${at.column} ${path} ${message}`;
    if (this.#known.has(key)) return;
    this.#known.add(key);
    this.all.push({ severity, source, file: this.file, line: at.line, column: at.column, path, message });
  }

  /** Whether something was said about this very place already. */
  knows(path: Path): boolean {
    const name = nameOf(path, this.#root);
    return this.all.some((finding) => finding.path === name);
  }

  /** "must be a string" becomes: is 5, but must be a string. */
  #sentence(path: Path, message: string): string {
    if (!message.startsWith("must ")) return message;
    const value = valueAt(this.#root, path);
    if (value === undefined) return `is missing and ${message}`;
    if (value === null) return `has no value, but ${message}`;
    return `is ${shown(value)}, but ${message}`;
  }
}

/** The problems of one schema, with unknown keys one by one. */
export function issuesOf(error: z.ZodError): readonly { readonly path: Path; readonly message: string }[] {
  return error.issues.flatMap((issue) => {
    const path = issue.path.filter((step) => typeof step !== "symbol");
    if (issue.code !== "unrecognized_keys") return [{ path, message: issue.message }];
    return issue.keys.map((key) => ({ path: [...path, key], message: issue.message }));
  });
}

/** `providers[2] "ec2": pools[0].labels[1].name` */
function nameOf(path: Path, root: unknown): string {
  const [first, second, ...rest] = path;
  if (first !== "providers" || typeof second !== "number") return dotted(path);
  const name = valueAt(root, [first, second, "name"]);
  const provider =
    typeof name === "string" ? `providers[${second}] ${JSON.stringify(name)}` : `providers[${second}]`;
  return rest.length === 0 ? provider : `${provider}: ${dotted(rest)}`;
}

function dotted(path: Path): string {
  let text = "";
  for (const step of path) {
    if (typeof step === "number") text += `[${step}]`;
    else text += text === "" ? step : `.${step}`;
  }
  return text;
}

/** A value as it may stand in a message: short, and numbers as they were written where that matters. */
function shown(value: unknown): string {
  if (value instanceof YamlFloat)
    return Number.isInteger(value.value) ? value.value.toFixed(1) : String(value.value);
  if (value instanceof YamlDate) return `the date ${value.text}`;
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object" && value !== null) return "a mapping";
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
