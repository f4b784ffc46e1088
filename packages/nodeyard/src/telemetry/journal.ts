/** Every event of the journal: its meaning in one line. */
export const journalEvents = {
  "request.accepted": "A pool took a request",
  "request.fulfilled": "All nodes of a request were delivered",
  "request.declined": "Pools declined a request, with the reason",
  "request.reset": "A request that had lost its launcher was put back",
  "request.waits": "Why a request is not served now",
  "offering.closed": "Launches of a label failed in a row: it is not launched for a while",
  "offering.open": "A launch of a label that had failed succeeded: it is launched again",
  "label.closed": "Launches of a label failed in all places: it is not launched for a while",
  "label.open": "A launch of a label whose budget was spent succeeded: it is launched again",
  "node.created": "The record of a node to be launched was written",
  "node.step": "A step of a launch or deletion ended",
  "node.ready": "A node was made and is ready",
  "node.console": "The last console output of a machine that did not come up",
  "node.launch-failed": "A launch attempt failed",
  "node.deleted": "A node's machine and record are gone",
  "node.delete-failed": "An attempt to delete a node failed",
  "node.dead-letter": "Many tries to delete a node failed; it is retried rarely",
  "node.vanished": "The machine of a ready node was gone; the node is deleted",
  "node.dead": "A ready node did not answer and is deleted",
  "resource.leaked": "A resource without a record was deleted",
  "backing.requested": "A backing node was requested",
  "backing.withdrawn": "A request for a backing node was withdrawn",
  "backing.adopted": "A backing node is ready for slots",
  "backing.failed": "A backing node gets no new slots, because it does not answer or an operator retired it",
  "backing.released": "An empty backing node was returned",
  "lease.granted": "Nodes are locked for a lease",
  "lease.ended": "A lease was released or expired, and its nodes were returned",
} as const;

/** Names of events; an interface: `explain` tells a history by them. */
export type JournalEventName = keyof typeof journalEvents;

/** Something that happened to a request or node, without its time: the journal adds that. */
export interface JournalEvent {
  readonly event: JournalEventName;
  readonly request?: string | undefined;
  readonly node?: string | undefined;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** An event of a journal, as it was written. */
export interface PastEvent {
  /** The writer's wall clock, milliseconds. */
  readonly at: number;
  /** One of journalEvents, or a name that a later release knows. */
  readonly event: string;
  readonly request: string | null;
  readonly node: string | null;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** What happened to one thing, oldest first; `problem` says why it is not known. */
export interface History {
  readonly events: readonly PastEvent[];
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
}

/** How much a journal keeps: what is older or more goes, the oldest first. */
export interface JournalLimits {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
}

/** Seven days, and 500 MB. */
export const defaultLimits: JournalLimits = { maxAgeMs: 7 * 86_400_000, maxBytes: 500 * 1_000_000 };

/** The journal's file in a state folder. */
export const JOURNAL = "journal.sqlite";

/** Where the program writes what happened, for `explain` and post-mortems. Bounded; never in the tree. */
export interface Journal {
  write(event: JournalEvent): void;
}

/** A journal that keeps the last `limit` events in memory. */
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
