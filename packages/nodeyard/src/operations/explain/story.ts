import type { History, Subject } from "../../telemetry/index.ts";

/** Why nothing happens at the moment. */
export interface Wait {
  /** A code of verdictCodes for requests; for nodes and leases one of the situations of their own. */
  readonly code: string;
  readonly meaning: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Tree time, milliseconds. */
  readonly since: number | null;
  /** When it is looked at again by itself; null: when what it waits for happens. */
  readonly nextTry: number | null;
  /** Who says so: a launcher that noted it, or the records alone. */
  readonly source: "journal" | "tree";
}

/** What is to be said of a request, a lease or a node (rule 4: nothing waits silently). */
export interface Story {
  readonly kind: "request" | "lease" | "node";
  readonly id: string;
  /** The record's state, or "gone". */
  readonly state: string;
  /** Tree time, milliseconds. */
  readonly since: number | null;
  /** What the records say of it; keys do not change. */
  readonly about: Readonly<Record<string, unknown>>;
  readonly waitsFor: Wait | null;
  /** What happens next, in a sentence. */
  readonly next: string;
  readonly history: History;
}

/** Looks a thing up in the journal of this machine. */
export type ReadHistory = (subject: Subject) => History;
