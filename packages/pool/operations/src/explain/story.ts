import type { MemberAnswers } from "@nodeyard/asking";
import { defined } from "@nodeyard/runtime";
import type { PastEvent } from "@nodeyard/telemetry";
import type { ImageParts } from "./image-parts.ts";
import type { PoolLine } from "./pool-line.ts";
import type { LifeStep } from "./steps.ts";

// All parts of a story are made in the form for programs: keys are never renamed or removed within a version; times are ISO 8601, of
// the tree.

/** Why nothing happens at the moment. */
export interface Wait {
  /** For requests a code of `verdictCodes`; nodes, leases, labels and images have codes of their own. */
  readonly code: string;
  readonly meaning: string;
  readonly since: string | null;
  /** Who says so: a launcher or a builder now, a launcher that noted it, or the records alone. */
  readonly source: "launcher" | "builder" | "journal" | "tree";
  readonly facts: Readonly<Record<string, unknown>>;
  /** When it is looked at again at the latest; null: only an event wakes it. */
  readonly next_try: string | null;
}

export interface ReportedEvent extends Omit<PastEvent, "at"> {
  /** By the clock of its writer; null: not a valid time. */
  readonly at: string | null;
  /** The host whose launcher wrote it; null: it was read from the file of this machine. */
  readonly by: string | null;
  /** Null: an event of a later release. */
  readonly meaning: string | null;
}

export interface ReportedHistory {
  readonly events: readonly ReportedEvent[];
  /** Why nothing is known, or not all; null: all that was asked for was read. */
  readonly problem: string | null;
}

/** The kinds of subjects that `explain` knows. */
export type StoryKind = "request" | "lease" | "node" | "label" | "image";

/** The explanation of a request, lease, node, label or image (rule 4: nothing waits silently). */
export interface Story {
  readonly kind: StoryKind;
  readonly id: string;
  /** The record's state, or "gone"; of a label "served", "waiting" or "unserved". */
  readonly state: string;
  readonly since: string | null;
  /** What the records say of it. */
  readonly about: Readonly<Record<string, unknown>>;
  readonly waits_for: Wait | null;
  /** What happens next, in a sentence. */
  readonly next: string;
  /** Of the pool that is likely to deliver first; null: unknown. */
  readonly estimate: PoolLine["estimate"];
  readonly pools: readonly PoolLine[];
  /** Past and current steps of nodes, in order. */
  readonly steps: readonly LifeStep[];
  readonly history: ReportedHistory;
  readonly asked: MemberAnswers;
  /** Of images only. */
  readonly image?: ImageParts;
}

/** What `explain` says, for programs. */
export type Explanation = ReturnType<typeof toExplanation>;

/** A story as it is printed and sent. `file` is the journal of this machine. */
export function toExplanation({ history: { events, problem }, asked, image, ...story }: Story, file: string) {
  const { kind, id, state, since, about, waits_for, next, estimate, pools, steps } = story;
  return {
    v: 1,
    // In the order in which a person reads them.
    ...{ kind, id, state, since, about, waits_for, next, estimate, pools, steps, events },
    ...defined({ image }),
    journal: { file, problem },
    members: {
      answered: asked.answers.map(({ member, hostname, version, leftOut }) => ({
        member,
        host: hostname,
        version,
        left_out: leftOut,
      })),
      silent: asked.silent,
    },
  };
}
