import { markOddKeys, plainScalar, ScalarError, taggedScalar, YamlDate, YamlFloat } from "@nodeyard/driver";
import { isMap, isScalar, isSeq, type Pair, type Scalar, type YAMLMap } from "yaml";
import { offsetOf, type SourceDocument, type SyntaxProblem } from "./document.ts";

/** Values in one file, at most: aliases of aliases could ask for any number. */
const MOST_VALUES = 200_000;
/** Levels of nesting, which bound the recursion. */
const DEEPEST = 200;

/** Something that is read, and not as it is written: a key that another one replaces, a number that is rounded. */
interface ValueNote extends SyntaxProblem {
  readonly path: readonly (string | number)[];
}

/** The file's value with floats and dates kept distinct, or why it has none. */
export function valuesOf(document: SourceDocument): {
  readonly value: unknown;
  readonly problems: readonly SyntaxProblem[];
  readonly notes: readonly ValueNote[];
} {
  const walker = new Walker(document);
  const value = walker.value(document.contents, 0);
  return { value, problems: walker.problems, notes: walker.notes };
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

/**
 * Makes the value of a document, once. Aliases are copied: a value that is named twice is two equal values. O(values), and
 * `MOST_VALUES` bounds them.
 */
class Walker {
  readonly problems: SyntaxProblem[] = [];
  readonly notes: ValueNote[] = [];
  readonly #document: SourceDocument;
  /** Where the walk is. */
  readonly #path: (string | number)[] = [];
  /** Mappings whose keys are being merged, by which a circle is noticed. */
  readonly #merging = new Set<YAMLMap>();
  #count = 0;

  constructor(document: SourceDocument) {
    this.#document = document;
  }

  /** The value of a node; null where it has none, with a problem. */
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
    if (isSeq(node)) return node.items.map((item, index) => this.#inside(index, item, depth));
    return isMap(node) ? this.#mapping(node, depth) : null;
  }

  #inside(step: string | number, raw: unknown, depth: number): unknown {
    this.#path.push(step);
    const value = this.value(raw, depth + 1);
    this.#path.pop();
    return value;
  }

  #scalar(node: Scalar): unknown {
    try {
      const text = String(node.value ?? "");
      const value = this.#read(node, text);
      if (typeof value === "number" && !Number.isSafeInteger(value))
        this.#note(node, `is ${text}, which is read as ${value}; write at most ${Number.MAX_SAFE_INTEGER}`);
      return value;
    } catch (error) {
      if (!(error instanceof ScalarError)) throw error;
      this.#problem(node, error.message);
      return null;
    }
  }

  /** Only plain scalars have types; what is quoted is text. */
  #read(node: Scalar, text: string): unknown {
    if (node.tag !== undefined) return taggedScalar(node.tag, text);
    return node.type === "PLAIN" || node.type === undefined ? plainScalar(node.source ?? text) : text;
  }

  /** Of equal keys the last one counts, as in PyYAML, with a note at the first. */
  #mapping(node: YAMLMap, depth: number): Record<string, unknown> {
    // Without a prototype: `constructor` and `__proto__` are keys as any other.
    const mapping: Record<string, unknown> = Object.create(null);
    const merges: unknown[] = [];
    const keys = new Map<string, unknown>();
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
      const name = String(key instanceof YamlFloat ? key.value : key);
      if (keys.has(name)) this.#noteRepeated(name, keys.get(name), pair.key);
      keys.set(name, pair.key);
      mapping[name] = this.#inside(name, pair.value, depth);
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
      // A mapping that merges itself adds nothing to itself.
      if (this.#merging.has(source)) continue;
      this.#merging.add(source);
      for (const [key, value] of Object.entries(this.#mapping(source, depth + 1))) {
        if (!(key in mapping)) mapping[key] = value;
      }
      this.#merging.delete(source);
    }
  }

  #noteRepeated(name: string, first: unknown, again: unknown): void {
    const { line } = this.#document.at(offsetOf(again) ?? 0);
    this.#path.push(name);
    this.#note(first, `has no effect, because the same key in line ${line} counts; remove one of the two`);
    this.#path.pop();
  }

  #note(node: unknown, message: string): void {
    this.notes.push({ ...this.#document.at(offsetOf(node) ?? 0), path: [...this.#path], message });
  }

  #problem(node: unknown, message: string): void {
    this.problems.push({ ...this.#document.at(offsetOf(node) ?? 0), message });
  }
}

function isMerge(pair: Pair): boolean {
  return isScalar(pair.key) && pair.key.type === "PLAIN" && pair.key.source === "<<";
}
