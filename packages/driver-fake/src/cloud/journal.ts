import type { ImageEvent } from "./images.ts";
import type { CloudEvent } from "./servers.ts";

/** Where a cloud keeps its events beyond the process. Calls are synchronous: one event is one line. */
export interface Journal {
  append(line: string): void;
  /** Whole lines that were appended, by anyone, since the last call. */
  unread(): readonly string[];
}

const OPS: ReadonlySet<unknown> = new Set(["create", "delete", "image", "image-data", "image-delete"]);

/** The event of a line; undefined for a line that a killed process left unfinished, and for what is no event. */
export function decodeEvent(line: string): CloudEvent | ImageEvent | undefined {
  try {
    const event = JSON.parse(line) as CloudEvent | ImageEvent | null;
    return OPS.has(event?.op) ? (event as CloudEvent | ImageEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** All events of machines in a journal's text, for whoever checks afterwards what was made and unmade. */
export function readJournal(text: string): readonly CloudEvent[] {
  return text
    .split("\n")
    .map(decodeEvent)
    .filter((event) => event?.op === "create" || event?.op === "delete") as readonly CloudEvent[];
}
