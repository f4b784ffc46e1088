import type { RequestEntry } from "../../view/index.ts";
import type { AgeOf } from "./choose.ts";
import type { Claim } from "./claims.ts";
import type { MetastaticLabelOwn } from "./config.ts";
import type { Backing, SlotIndex } from "./slot-index.ts";

/** What the owner of a metastatic provider has to do. */
export type OwnerAction =
  /** Ask for backing nodes of a label. */
  | { readonly type: "ask"; readonly label: string; readonly count: number }
  /** Take back a request that nobody needs any more. */
  | { readonly type: "withdraw"; readonly request: RequestEntry; readonly why: string }
  /** A request was answered: its node becomes a backing node. */
  | { readonly type: "adopt"; readonly request: RequestEntry; readonly label: string }
  /** Let a backing node take slots, with what lives on it already. */
  | { readonly type: "open"; readonly backing: Backing }
  /** Write down that it takes no more. */
  | { readonly type: "fail"; readonly backing: Backing }
  /** Make the claim that a node's record speaks of. */
  | { readonly type: "reclaim"; readonly node: string }
  /** Remove a claim that no record speaks of. */
  | { readonly type: "drop"; readonly claim: Claim }
  /** Take out an idle node whose backing node takes no more, or is gone. */
  | { readonly type: "recycle"; readonly node: string; readonly why: string }
  /** Give the backing node back: it is deleted by its own provider. */
  | { readonly type: "release"; readonly backing: Backing; readonly why: string }
  /** Clear away the folder of a backing node that is gone. */
  | { readonly type: "close"; readonly backing: string };

/** Tells an action from others of a plan, and is the same in the next plan. */
export function keyOf(action: OwnerAction): string {
  switch (action.type) {
    case "ask":
      return `ask ${action.label}`;
    case "withdraw":
    case "adopt":
      return `${action.type} ${action.request.id}`;
    case "reclaim":
    case "recycle":
      return `${action.type} ${action.node}`;
    case "drop":
      return `drop ${action.claim.path}`;
    case "close":
      return `close ${action.backing}`;
    default:
      return `${action.type} ${action.backing.id}`;
  }
}

export interface OwnerFacts {
  readonly book: SlotIndex;
  readonly provider: string;
  readonly labels: ReadonlyMap<string, MetastaticLabelOwn>;
  /** Requests of this owner. */
  readonly requests: readonly RequestEntry[];
  /** When the last slot of a backing node became free, or it was first seen; steady milliseconds. */
  readonly lastUsed: (backing: string) => number;
  /** Not to be asked for before, by label; steady milliseconds. */
  readonly askAfter: ReadonlyMap<string, number>;
  /** Whether to compare all claims with all records: at the start, now and then, and when a node went without freeing its slot. */
  readonly compare: boolean;
  /** Steady milliseconds. */
  readonly now: number;
  readonly ageOf: AgeOf;
  /** Whether anything may go because of its age. */
  readonly agesTrusted: boolean;
}

/** A plan in the making. */
export interface Draft {
  readonly actions: OwnerAction[];
  nextAt: number;
}

/** Notes when something is due that is not now. */
export function lookAt(draft: Draft, at: number): void {
  draft.nextAt = Math.min(draft.nextAt, at);
}

export interface OwnerPlan {
  readonly actions: readonly OwnerAction[];
  /** When to look again though nothing happens; Infinity: no need. Steady milliseconds. */
  readonly nextAt: number;
}
