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

interface ListOptions {
  readonly nullable?: boolean;
  readonly alone?: string | undefined;
}

/**
 * Reads values from one mapping in the way of the loader: unknown keys are ignored, null means absent, and numeric strings
 * are numbers. An unusable value is reported as an error, and the default is returned.
 */
export class Reader {
  /** The mapping as the file has it, for keys that the methods below cannot read. */
  readonly raw: Raw;
  readonly path: Path;
  /** Reports a finding with its whole path. */
  readonly report: (finding: ConfigFinding) => void;

  constructor(raw: Raw, path: Path, report: (finding: ConfigFinding) => void) {
    this.raw = raw;
    this.path = path;
    this.report = report;
  }

  /** Reports an unusable value. `key` undefined: the finding is about the mapping itself. */
  error(key: string | number | undefined, message: string): void {
    this.report({ severity: "error", path: this.#at(key), message });
  }

  warn(key: string | number | undefined, message: string): void {
    this.report({ severity: "warning", path: this.#at(key), message });
  }

  /** Reports what the loader takes and what can never come true, such as a label without an image. */
  useless(key: string | number | undefined, message: string): void {
    this.report({ severity: "effect", path: this.#at(key), message });
  }

  /** Whether the key is there with a value; null counts as absent. */
  has(key: string): boolean {
    return this.raw[key] !== undefined && this.raw[key] !== null;
  }

  /** A text; the default when the key is absent or null. */
  text<D extends string | null>(key: string, missing: D): string | D {
    const isScalar = (value: unknown) => ["string", "number", "boolean"].includes(typeof value);
    return this.#value(key, "a string", (value) => (isScalar(value) ? String(value) : undefined)) ?? missing;
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
    const number = this.#value(key, "a number", (value) => {
      const made = toNumber(value);
      return Number.isNaN(made) ? undefined : made;
    });
    return number ?? missing;
  }

  /** true or false; a number is true unless it is 0. */
  flag(key: string, missing: boolean): boolean {
    const made = (value: unknown) => (typeof value === "number" ? value !== 0 : value === true);
    const isFlag = (value: unknown) => typeof value === "boolean" || typeof value === "number";
    return this.#value(key, "true or false", (value) => (isFlag(value) ? made(value) : undefined)) ?? missing;
  }

  /** A mapping; null when the key is absent or unusable. */
  mapping(key: string): Raw | null {
    return this.#value(key, "a mapping", (value) => (isMapping(value) ? value : undefined)) ?? null;
  }

  /** A reader of the mapping under `key`; without one, a reader of an empty mapping. */
  inner(key: string): Reader {
    return new Reader(this.mapping(key) ?? {}, [...this.path, key], this.report);
  }

  /** A list of strings; numbers in it are written as text. Unusable items are reported and left out. */
  texts(key: string): readonly string[] {
    return this.#list(key, false).flatMap((value, index) => {
      if (typeof value === "string" || typeof value === "number") return [String(value)];
      this.report({ severity: "error", path: [...this.path, key, index], message: "must be a string" });
      return [];
    });
  }

  /** The mappings of a list, each with its own reader; options as of `entries`. */
  mappings(key: string, { nullable = false, alone }: ListOptions = {}): readonly Reader[] {
    return this.#list(key, nullable).flatMap((item, index) => {
      const path = [...this.path, key, index];
      const value = alone !== undefined && typeof item === "string" ? { [alone]: item } : item;
      if (isMapping(value)) return [new Reader(value, path, this.report)];
      this.report({ severity: "error", path, message: "must be a mapping" });
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

  /** The value as `make` has it; undefined when it is absent or null, or `make` reports by undefined that it must be something else. */
  #value<T>(key: string, must: string, make: (value: unknown) => T | undefined): T | undefined {
    const value = this.raw[key];
    const made = value === undefined || value === null ? undefined : make(value);
    if (made === undefined && this.has(key)) this.error(key, `must be ${must}`);
    return made;
  }

  #at(key: string | number | undefined): Path {
    return key === undefined ? this.path : [...this.path, key];
  }
}
