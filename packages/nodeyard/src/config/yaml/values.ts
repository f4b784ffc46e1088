import { markOddKeys, YamlDate, YamlFloat } from "@nodeyard/driver";
import { isMap, isScalar, isSeq, type Pair, type Scalar, type YAMLMap } from "yaml";
import { offsetOf, type SourceDocument, type SyntaxProblem } from "./document.ts";
import { plainScalar, ScalarError, taggedScalar } from "./scalars.ts";

/** Values in one file, at most: aliases of aliases could ask for any number. */
const MOST_VALUES = 200_000;
const DEEPEST = 200;

/** The file's value with floats and dates kept distinct, or why it has none. */
export function valuesOf(document: SourceDocument): {
  readonly value: unknown;
  readonly problems: readonly SyntaxProblem[];
} {
  const walker = new Walker(document);
  const value = walker.value(document.contents, 0);
  return { value, problems: walker.problems };
}

/** The same value as plain JavaScript: floats are numbers, dates text. */
export function plain(value: unknown): unknown {
  if (value instanceof YamlFloat) return value.value;
  if (value instanceof YamlDate) return value.text;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> = Object.create(null);
  for (const [key, member] of Object.entries(value)) copy[key] = plain(member);
  return copy;
}

class Walker {
  readonly problems: SyntaxProblem[] = [];
  readonly #document: SourceDocument;
  #count = 0;

  constructor(document: SourceDocument) {
    this.#document = document;
  }

  value(raw: unknown, depth: number): unknown {
    const node = this.#document.resolve(raw);
    this.#count++;
    if (this.#count > MOST_VALUES || depth > DEEPEST) {
      if (this.problems.length === 0)
        this.#problem(raw, "the file is nested too deeply, or its aliases never end");
      return null;
    }
    if (node === undefined) {
      if (raw !== undefined) this.#problem(raw, "an alias names an anchor that does not exist");
      return null;
    }
    if (isScalar(node)) return this.#scalar(node);
    if (isSeq(node)) return node.items.map((item) => this.value(item, depth + 1));
    return isMap(node) ? this.#mapping(node, depth) : null;
  }

  #scalar(node: Scalar): unknown {
    try {
      const text = String(node.value ?? "");
      if (node.tag !== undefined) return taggedScalar(node.tag, text);
      return node.type === "PLAIN" || node.type === undefined ? plainScalar(node.source ?? text) : text;
    } catch (error) {
      if (!(error instanceof ScalarError)) throw error;
      this.#problem(node, error.message);
      return null;
    }
  }

  #mapping(node: YAMLMap, depth: number): Record<string, unknown> {
    const mapping: Record<string, unknown> = Object.create(null);
    const merges: unknown[] = [];
    let odd = false;
    for (const pair of node.items) {
      if (isMerge(pair)) {
        merges.push(pair.value);
        continue;
      }
      const key = this.value(pair.key, depth + 1);
      odd ||= typeof key !== "string";
      if (typeof key === "object" && key !== null && !(key instanceof YamlFloat)) {
        this.#problem(pair.key, "a key must be a single value");
        continue;
      }
      mapping[String(key instanceof YamlFloat ? key.value : key)] = this.value(pair.value, depth + 1);
    }
    if (odd) markOddKeys(mapping);
    for (const merge of merges) this.#merge(mapping, merge, depth);
    return mapping;
  }

  /** Keys of merged mappings, where the mapping has none of its own; earlier sources win. */
  #merge(mapping: Record<string, unknown>, raw: unknown, depth: number): void {
    const node = this.#document.resolve(raw);
    for (const item of isSeq(node) ? node.items : [raw]) {
      const source = this.#document.resolve(item);
      if (!isMap(source)) {
        this.#problem(item, "<< takes a mapping or a list of mappings");
        continue;
      }
      for (const [key, value] of Object.entries(this.#mapping(source, depth + 1))) {
        if (!(key in mapping)) mapping[key] = value;
      }
    }
  }

  #problem(node: unknown, message: string): void {
    this.problems.push({ ...this.#document.at(offsetOf(node) ?? 0), message });
  }
}

function isMerge(pair: Pair): boolean {
  return isScalar(pair.key) && pair.key.type === "PLAIN" && pair.key.source === "<<";
}
