import type { NodeRecord } from "@nodeyard/model";
import type { JournalEventName } from "./journal-events.ts";

/** Something that happened to a request or node, without its time: the journal adds that. */
export interface JournalEvent {
  readonly event: JournalEventName;
  readonly request?: string | undefined;
  readonly node?: string | undefined;
  /** Members by the names in `journalEvents`; they must have a form in JSON. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** The node's, where the view may not have it yet or any more: the log tells more of it than the journal keeps. */
  readonly record?: NodeRecord;
}

/** An event of a journal, as it was written. */
export interface PastEvent {
  /** The writer's wall clock, milliseconds. */
  readonly at: number;
  /** One of `journalEvents`, or a name of a later release. */
  readonly event: string;
  readonly request: string | null;
  readonly node: string | null;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** What happened to one thing, oldest first; `problem` says why it is not known. */
export interface History {
  readonly events: readonly PastEvent[];
  /** One line for people; null: the events are all that is known. */
  readonly problem: string | null;
}

/** A history that could not be read, and why. */
export function noHistory(problem: string): History {
  return { events: [], problem };
}

/** Whatever is known of any of these. */
export interface Subject {
  readonly request?: string | undefined;
  readonly node?: string | undefined;
  readonly lease?: string | undefined;
  /** The id of a job of a CI: leases that were granted for it, or ended. */
  readonly job?: string | undefined;
}

/** Limits of a journal: beyond them the oldest events are deleted first. */
export interface JournalLimits {
  /** Age by the writer's wall clock, milliseconds. */
  readonly maxAgeMs: number;
  /** Size of the journal's file. */
  readonly maxBytes: number;
}

/** Seven days, and 500 MB. */
export const defaultLimits: JournalLimits = { maxAgeMs: 7 * 86_400_000, maxBytes: 500 * 1_000_000 };

/** The journal's file in a state folder. */
export const JOURNAL = "journal.sqlite";

/** Where the program writes what happened, for `explain` and post-mortems. Bounded; never in the tree. */
export interface Journal {
  /** Returns at once; what cannot be written is counted as dropped. */
  write(event: JournalEvent): void;
}

/** A journal that keeps the last `limit` events in memory, for tests and the simulation. */
export function memoryJournal(limit = 10_000): Journal & { readonly events: readonly JournalEvent[] } {
  const events: JournalEvent[] = [];
  return {
    events,
    write(event) {
      events.push(event);
      if (events.length > limit) events.splice(0, events.length - limit);
    },
  };
}
