import { isMapping, toNumber } from "./vocabulary.ts";

type Path = readonly (string | number)[];
type Raw = Readonly<Record<string, unknown>>;

/** A finding about a value in the file. `path` is relative to the provider: ["pools", 0, "labels", 1, "name"]. */
export interface ConfigFinding {
  /** `effect`: a warning, for which `--strict` fails: what the file says can never come true. */
  readonly severity: "error" | "warning" | "effect";
  readonly path: readonly (string | number)[];
  /** One sentence: what is wrong with which value, and what to write instead. */
  readonly message: string;
}

/**
 * Reads values from one mapping in the way of the loader: unknown keys are ignored, null means absent, and numeric strings
 * are numbers. An unusable value is reported as an error, and the default is returned.
 */
export class Reader {
  /** The mapping as the file has it, for keys that the methods below cannot read. */
  readonly raw: Raw;
  readonly path: Path;
  readonly #report: (finding: ConfigFinding) => void;

  constructor(raw: Raw, path: Path, report: (finding: ConfigFinding) => void) {
    this.raw = raw;
    this.path = path;
    this.#report = report;
  }

  /** Reports an unusable value. `key` undefined: the finding is about the mapping itself. */
  error(key: string | number | undefined, message: string): void {
    this.#report({ severity: "error", path: this.#at(key), message });
  }

  warn(key: string | number | undefined, message: string): void {
    this.#report({ severity: "warning", path: this.#at(key), message });
  }

  /** Reports what the loader takes and what can never come true, such as a label without an image. */
  useless(key: string | number | undefined, message: string): void {
    this.#report({ severity: "effect", path: this.#at(key), message });
  }

  /** Whether the key is there with a value; null counts as absent. */
  has(key: string): boolean {
    return this.raw[key] !== undefined && this.raw[key] !== null;
  }

  /** A text; the default when the key is absent or null. */
  text<D extends string | null>(key: string, missing: D): string | D {
    const value = this.raw[key];
    if (value === undefined || value === null) return missing;
    if (typeof value === "string") return value;
    if (typeof value === "number" || typeof value === "boolean") return String(value);
    this.error(key, "must be a string");
    return missing;
  }

  /** A required text that is not empty; undefined after an error. */
  needed(key: string): string | undefined {
    const value = this.text(key, null);
    if (value === null || value === "") {
      if (typeof this.raw[key] !== "object" || this.raw[key] === null)
        this.error(key, "is missing and must be a string");
      return undefined;
    }
    return value;
  }

  /** A number, also from a numeric string; the default when the key is absent, null or unusable. */
  number(key: string, missing: number): number {
    const value = this.raw[key];
    if (value === undefined || value === null) return missing;
    const number = toNumber(value);
    if (number !== undefined && !Number.isNaN(number)) return number;
    this.error(key, "must be a number");
    return missing;
  }

  /** A duration in milliseconds; the file has seconds. */
  milliseconds(key: string, missingSeconds: number): number {
    return this.number(key, missingSeconds) * 1000;
  }

  /** true or false; a number is true unless it is 0. */
  flag(key: string, missing: boolean): boolean {
    const value = this.raw[key];
    if (value === undefined || value === null) return missing;
    if (typeof value === "boolean") return value;
    if (typeof value === "number") return value !== 0;
    this.error(key, "must be true or false");
    return missing;
  }

  /** A mapping; null when the key is absent or unusable. */
  mapping(key: string): Raw | null {
    const value = this.raw[key];
    if (value === undefined || value === null) return null;
    if (isMapping(value)) return value;
    this.error(key, "must be a mapping");
    return null;
  }

  /** A reader of the mapping under `key`; without one, a reader of an empty mapping. */
  inner(key: string): Reader {
    return new Reader(this.mapping(key) ?? {}, [...this.path, key], this.#report);
  }

  /** A list of strings; numbers in it are written as text. Unusable items are reported and left out. */
  texts(key: string): readonly string[] {
    return this.#list(key, false).flatMap((value, index) => {
      if (typeof value === "string" || typeof value === "number") return [String(value)];
      this.#report({ severity: "error", path: [...this.path, key, index], message: "must be a string" });
      return [];
    });
  }

  /** The mappings of a list, each with its own reader. `nullable`: a key without a value is an empty list. */
  mappings(key: string, nullable = false): readonly Reader[] {
    return this.#list(key, nullable).flatMap((value, index) => {
      const path = [...this.path, key, index];
      if (isMapping(value)) return [new Reader(value, path, this.#report)];
      this.#report({ severity: "error", path, message: "must be a mapping" });
      return [];
    });
  }

  #list(key: string, nullable: boolean): readonly unknown[] {
    const value = this.raw[key];
    if (value === undefined || (value === null && nullable)) return [];
    if (Array.isArray(value)) return value;
    this.error(key, value === null ? "has no value; write a list, or leave the key out" : "must be a list");
    return [];
  }

  #at(key: string | number | undefined): Path {
    return key === undefined ? this.path : [...this.path, key];
  }
}
