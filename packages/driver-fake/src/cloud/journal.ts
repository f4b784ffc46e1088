import type { ImageEvent } from "./images.ts";
import type { CloudEvent } from "./servers.ts";

/** Where a cloud keeps its events beyond the process. Calls are synchronous: one event is one line. */
export interface Journal {
  append(line: string): void;
  /** Whole lines that were appended, by anyone, since the last call. */
  unread(): readonly string[];
}

/** A journal that several clouds of one process share, as processes share a file: for simulations. */
export class MemoryJournal {
  readonly #lines: string[] = [];

  /** A journal for one cloud; each has its own place in the lines. */
  open(): Journal {
    let next = 0;
    return {
      append: (line) => void this.#lines.push(line),
      unread: () => {
        const lines = this.#lines.slice(next);
        next = this.#lines.length;
        return lines;
      },
    };
  }

  /** Everything that was made and unmade, in order. */
  events(): readonly CloudEvent[] {
    return readJournal(this.#lines.join("\n"));
  }
}

export function encodeEvent(event: CloudEvent | ImageEvent): string {
  return JSON.stringify(event);
}

/** Undefined for what is no event of a machine, and for a line that a killed process left unfinished. */
export function decodeEvent(line: string): CloudEvent | undefined {
  const value = parsed(line);
  const known = (value?.op === "create" && "server" in value) || (value?.op === "delete" && "id" in value);
  return known ? (value as unknown as CloudEvent) : undefined;
}

/** As `decodeEvent`, of an image. */
export function decodeImageEvent(line: string): ImageEvent | undefined {
  const value = parsed(line);
  const { op } = value ?? {};
  const known =
    (op === "image" && value?.image !== undefined) || op === "image-data" || op === "image-delete";
  return known ? (value as unknown as ImageEvent) : undefined;
}

/** All events of a journal's text, for whoever checks afterwards what was made and unmade. */
export function readJournal(text: string): readonly CloudEvent[] {
  return text
    .split("\n")
    .map(decodeEvent)
    .filter((event) => event !== undefined);
}

function parsed(line: string): { readonly [key: string]: unknown } | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
