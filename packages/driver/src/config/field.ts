import type { z } from "zod";
import type { Reader } from "./reader.ts";

type Path = readonly (string | number)[];

/** What the table says of a key, beside its type and its meaning. */
export interface About {
  /** The value of an absent key, in the file's unit. */
  readonly default?: unknown;
  /** The page's words for an absent key where no single value stands for it: "the pool's". */
  readonly shown?: unknown;
  /** Unit of the value: "s", "MiB". */
  readonly unit?: string;
  /** Older spelling, or without effect. */
  readonly deprecated?: boolean;
  /**
   * Who demands the key. `validator`: `config-validate` alone, and the loader takes the default. `loader`: the old validator lets
   * it be absent, and no launcher can work without it. True: both.
   */
  readonly needed?: true | "validator" | "loader";
}

/** What has to be at a path that a key names: a file or a folder that can be read; a work folder can be written, too. */
export type PathKind = "file" | "folder" | "work-folder";

/** What `config-validate` says of a key that it accepts. */
export interface Note {
  /**
   * schema: the old validator would refuse it. effect: it does nothing, so `--strict` fails for it. A kind of path: the message is a path
   * of this machine, at which `--strict` looks for that. difference: what is not as in Nodepool, for `--migration`.
   */
  readonly source: "schema" | "effect" | "difference" | PathKind;
  readonly path: Path;
  readonly message: string;
}

interface Parts<T, Name> {
  /** What the validator takes, with what the page says of it. */
  readonly schema: z.ZodType;
  readonly about: About;
  readonly name: Name;
  /** What the loader makes of it; undefined after an error, where it is needed. */
  readonly read: (at: Reader, key: string) => T;
  readonly notes?: ((value: unknown, path: Path) => readonly Note[]) | undefined;
  /** The loader does not look at it. */
  readonly isUnread?: boolean;
  /** A group: keys of the same mapping. */
  readonly group?: Readonly<Record<string, Field<unknown, string | undefined>>> | undefined;
}

/**
 * One key of the file. The compiled property is called like the key, in camel case, unless `as` names another. A field is never
 * changed: each method makes a new one.
 */
export class Field<T, Name extends string | undefined = undefined> {
  readonly parts: Parts<T, Name>;

  constructor(parts: Parts<T, Name>) {
    this.parts = parts;
  }

  /** Whether the loader cannot do without the key. */
  get isDemanded(): boolean {
    const { needed } = this.parts.about;
    return needed === true || needed === "loader";
  }

  /** Names the compiled property. */
  as<N extends string>(name: N): Field<T, N> {
    return new Field({ ...this.parts, name });
  }

  /** Makes the compiled value; `at.error(key, ...)` says what is wrong with it. Not called for a needed key that is missing. */
  map<U>(make: (value: T, at: Reader, key: string) => U): Field<U, Name> {
    const read = (at: Reader, key: string) => {
      const value = this.parts.read(at, key);
      return value === undefined && this.isDemanded ? (undefined as U) : make(value, at, key);
    };
    return new Field({ ...this.parts, read });
  }

  /** `problem` is the end of a sentence about a value that no launcher can work with: "is x; write y". */
  check(problem: (value: NonNullable<T>) => string | undefined): Field<T, Name> {
    return this.map((value, at, key) => {
      const message = value === null || value === undefined || !at.has(key) ? undefined : problem(value);
      if (message !== undefined) at.error(key, message);
      return value;
    });
  }

  /** Read only where another key makes it count; undefined elsewhere. */
  when(counts: (at: Reader) => boolean): Field<T | undefined, Name> {
    const read = (at: Reader, key: string) => (counts(at) ? this.parts.read(at, key) : undefined);
    return new Field({ ...this.parts, read });
  }

  /** The old validator refuses the key, or the values for which `when` holds, though it is documented and works. */
  accepted(message: string, when: (value: unknown) => boolean = () => true): Field<T, Name> {
    return this.#noted("schema", message, when);
  }

  /** Accepted and never looked at, because files for other launchers have it; there is no compiled property. */
  unread(): Field<never, Name> {
    return new Field({ ...this.parts, isUnread: true }) as Field<never, Name>;
  }

  /** The same, and `config-validate` says so. */
  unused(): Field<never, Name> {
    return this.#noted("effect", "has no effect; remove it", () => true).unread();
  }

  /** Names what has to be on this machine; `each` takes several paths out of one text. */
  names(kind: PathKind, each = (text: string): readonly string[] => [text]): Field<T, Name> {
    return this.#with((value, path) => {
      const named = typeof value === "string" ? each(value).filter((one) => one !== "") : [];
      return named.map((message) => ({ source: kind, path, message }));
    });
  }

  /** What whoever comes from Nodepool has to know: what the key does here, and what it does there. */
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
