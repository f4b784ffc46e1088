import type { ImageEvent } from "./images.ts";
import type { CloudEvent } from "./servers.ts";

/** Stores a cloud's events beyond the process. Calls are synchronous; one event is one line. */
export interface Journal {
  append(line: string): void;
  /** Complete lines that any process has appended since the last call. */
  unread(): readonly string[];
}

/** The events of this version. A line of another version is passed over, like one that a killed process left incomplete. */
const OPS: ReadonlySet<unknown> = new Set([
  "create",
  "delete",
  "suspend",
  "wake",
  "image",
  "image-data",
  "image-delete",
]);

/** The event of a line; undefined for a line that a killed process left incomplete, and for other text. */
export function decodeEvent(line: string): CloudEvent | ImageEvent | undefined {
  try {
    const event = JSON.parse(line) as CloudEvent | ImageEvent | null;
    return OPS.has(event?.op) ? (event as CloudEvent | ImageEvent) : undefined;
  } catch {
    return undefined;
  }
}

/** All machine events in a journal's text, for tests that check afterwards what was created and deleted. */
export function readJournal(text: string): readonly CloudEvent[] {
  return text
    .split("\n")
    .map(decodeEvent)
    .filter((event) => event?.op === "create" || event?.op === "delete") as readonly CloudEvent[];
}
