import { keepSecret } from "@nodeyard/runtime";
import type { z } from "zod";
import { type Grammar, shownValue } from "./grammar.ts";
import type { Reader } from "./reader.ts";
import { isMapping } from "./vocabulary.ts";

type Path = readonly (string | number)[];

/** Facts about a key besides its type and its description. */
export interface About {
  /** The value of an absent key, in the unit of the file. */
  readonly default?: unknown;
  /** Text of the reference page for an absent key when no single value describes it: "the pool's". */
  readonly shown?: unknown;
  /** Unit of the value: "s", "MiB". */
  readonly unit?: string;
  /** An older spelling, or a key without effect. */
  readonly deprecated?: boolean;
  /**
   * Who requires the key. `validator`: only `config-validate`; the loader uses the default. `loader`: Nodepool's validator accepts its
   * absence, but no launcher can work without it. True: both.
   */
  readonly needed?: true | "validator" | "loader";
  /** What the value must be to work; of a list or mapping, each of its values. Anything else is an error of the loader. */
  readonly like?: Grammar;
  /** What the names in a mapping must be. */
  readonly keys?: Grammar;
  /** What a list or mapping must be as a whole. */
  readonly all?: Grammar;
  /** What a value that is not `like` it comes to: "counts as 0". The loader then takes it, and only `--strict` fails. */
  readonly instead?: string;
}

/** What must exist at a path in the file: a readable file or folder; a work folder must also be writable. */
export type PathKind = "file" | "folder" | "work-folder";

/** A note of `config-validate` on a key that it accepts. */
export interface Note {
  /**
   * schema: Nodepool's validator would refuse it. value: it can never work, which is an error of the loader. effect: it has no effect, so
   * `--strict` fails. A path kind: the message is a path of this machine, which `--strict` checks. difference: behaviour that differs from
   * Nodepool, for `--migration`.
   */
  readonly source: "schema" | "value" | "effect" | "difference" | PathKind;
  readonly path: Path;
  readonly message: string;
}

type Fields = Readonly<Record<string, Field<unknown, string | undefined>>>;

interface Parts<T, Name> {
  /** What the validator accepts, with the description for the reference page. */
  readonly schema: z.ZodType;
  readonly about: About;
  readonly name: Name;
  /** Reads the value for the loader. Undefined after an error in a required key. */
  readonly read: (at: Reader, key: string) => T;
  readonly notes?: ((value: unknown, path: Path) => readonly Note[]) | undefined;
  /** The loader ignores the key. */
  readonly isUnread?: boolean;
  /** The keys of the mapping, or of each mapping of the list. */
  readonly inside?: { readonly table: Fields } | undefined;
  /** For a group: the keys, which are in the same mapping. */
  readonly group?: Fields | undefined;
}

/** One key of the file. The compiled property has its name in camel case, unless `as` sets another. Fields are immutable: methods return new ones. */
export class Field<T, Name extends string | undefined = undefined> {
  readonly parts: Parts<T, Name>;

  constructor(parts: Parts<T, Name>) {
    this.parts = parts;
  }

  /** Whether the loader requires the key. */
  get isDemanded(): boolean {
    const { needed } = this.parts.about;
    return needed === true || needed === "loader";
  }

  /** Sets the name of the compiled property. */
  as<N extends string>(name: N): Field<T, N> {
    return new Field({ ...this.parts, name });
  }

  /** Converts the value; report errors with `at.error(key, ...)`. Not called for a required key that is missing. */
  map<U>(make: (value: T, at: Reader, key: string) => U): Field<U, Name> {
    const read = (at: Reader, key: string) => {
      const value = this.parts.read(at, key);
      return value === undefined && this.isDemanded ? (undefined as U) : make(value, at, key);
    };
    return new Field({ ...this.parts, read });
  }

  /** The value is kept out of all messages, whatever quotes it. */
  secret(): Field<T, Name> {
    return this.map((value) => {
      if (typeof value === "string") keepSecret(value, "configured");
      return value;
    });
  }

  /** Reads the key only when `counts` returns true; otherwise the value is undefined. */
  when(counts: (at: Reader) => boolean): Field<T | undefined, Name> {
    const read = (at: Reader, key: string) => (counts(at) ? this.parts.read(at, key) : undefined);
    return new Field({ ...this.parts, read });
  }

  /** Notes that Nodepool's validator refuses the key (or the values for which `when` holds), although it is documented and works. */
  accepted(message: string, when: (value: unknown) => boolean = () => true): Field<T, Name> {
    return this.#noted("schema", message, when);
  }

  /** The key is accepted for files that other launchers use too, and ignored. It has no compiled property. */
  unread(): Field<never, Name> {
    return new Field({ ...this.parts, isUnread: true }) as Field<never, Name>;
  }

  /** As `unread`, with a note of `config-validate` that the key has no effect. */
  unused(): Field<never, Name> {
    return this.#noted("effect", "has no effect; remove it", () => true).unread();
  }

  /** The value is a path on this machine. `each` splits a text with several paths. */
  names(kind: PathKind, each = (text: string): readonly string[] => [text]): Field<T, Name> {
    return this.#with((value, path) => {
      const named = typeof value === "string" ? each(value).filter((one) => one !== "") : [];
      return named.map((message) => ({ source: kind, path, message }));
    });
  }

  /** Notes a difference from Nodepool, for users who migrate: what the key does here and what it does there. */
  differs(message: string): Field<T, Name> {
    const noted = this.#noted("difference", message, () => true);
    return new Field({ ...noted.parts, schema: this.parts.schema.meta({ difference: message }) });
  }

  #noted(source: Note["source"], message: string, when: (value: unknown) => boolean): Field<T, Name> {
    return this.#with((value, path) => (when(value) ? [{ source, path, message }] : []));
  }

  #with(more: (value: unknown, path: Path) => readonly Note[]): Field<T, Name> {
    const { notes } = this.parts;
    const all = (value: unknown, path: Path) => [...(notes?.(value, path) ?? []), ...more(value, path)];
    return new Field({ ...this.parts, notes: all });
  }
}

/** Notes on what a value must be to work, beyond its type. Null is an absent key. */
export function valueNotes({ like, keys, all, instead }: About, value: unknown, path: Path): readonly Note[] {
  if (value === null || value === undefined) return [];
  const isList = Array.isArray(value);
  const parts = isList || isMapping(value) ? Object.entries(value) : undefined;
  const judge = (grammar: Grammar | undefined, one: unknown, at: Path, named: string): readonly Note[] => {
    if (grammar === undefined || one === null || grammar.holds(one)) return [];
    const what = shownValue(grammar, one);
    const said = instead === undefined ? `${named} ${what}` : `is ${what}, which ${instead}`;
    const source = instead === undefined ? "value" : "effect";
    return [{ source, path: at, message: `${said}; write ${grammar.write}` }];
  };
  if (parts === undefined) return judge(like, value, path, "is");
  return [
    ...judge(all, value, path, "is"),
    ...parts.flatMap(([key, one]) => {
      const at = [...path, isList ? Number(key) : key];
      return [...(isList ? [] : judge(keys, key, at, "has the name")), ...judge(like, one, at, "is")];
    }),
  ];
}
