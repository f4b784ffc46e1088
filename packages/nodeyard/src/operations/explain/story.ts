import type { MemberAnswers, PoolStanding } from "../../asking/index.ts";
import type { PastEvent } from "../../telemetry/index.ts";
import type { ImageParts } from "./image-parts.ts";
import type { LifeStep } from "./steps.ts";

/** Why nothing happens at the moment. */
export interface Wait {
  /** For requests a code of `verdictCodes`; nodes, leases, labels and images have codes of their own. */
  readonly code: string;
  readonly meaning: string;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Tree time, milliseconds. */
  readonly since: number | null;
  /** When it is looked at again at the latest; null: only an event wakes it. */
  readonly nextTry: number | null;
  /** Who says so: a launcher or a builder now, a launcher that noted it, or the records alone. */
  readonly source: "launcher" | "builder" | "journal" | "tree";
}

/** An event, and the host whose launcher wrote it; null: it was read from the file of this machine. */
export interface ReportedEvent extends PastEvent {
  readonly by: string | null;
}

export interface ReportedHistory {
  readonly events: readonly ReportedEvent[];
  /** Why nothing is known, or not all; null: all that was asked for was read. */
  readonly problem: string | null;
}

/** Where it stands in one pool, and the launcher that serves that: its name under `/nodeyard/members`, and its host. */
export interface PoolLine extends PoolStanding {
  readonly member: string;
  readonly host: string;
}

/** The kinds of subjects that `explain` knows. */
export type StoryKind = "request" | "lease" | "node" | "label" | "image";

/** The explanation of a request, lease, node, label or image (rule 4: nothing waits silently). */
export interface Story {
  readonly kind: StoryKind;
  readonly id: string;
  /** The record's state, or "gone"; of a label "offered", "unserved" or "unknown". */
  readonly state: string;
  /** Tree time, milliseconds. */
  readonly since: number | null;
  /** What the records say of it; keys do not change. */
  readonly about: Readonly<Record<string, unknown>>;
  readonly waitsFor: Wait | null;
  /** What happens next, in a sentence. */
  readonly next: string;
  /** The pool that is likely to deliver first; null: unknown. */
  readonly estimate: (NonNullable<PoolStanding["estimate"]> & { readonly pool: string }) | null;
  readonly pools: readonly PoolLine[];
  /** Past and current steps of nodes, in order. */
  readonly steps: readonly LifeStep[];
  readonly history: ReportedHistory;
  readonly asked: MemberAnswers;
  /** Of images only; in the form for programs already. */
  readonly image?: ImageParts;
}
