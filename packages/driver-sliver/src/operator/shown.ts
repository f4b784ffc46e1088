import { tagOf } from "@nodeyard/driver";
import type { NodeReport, SliverReport } from "@nodeyard/sliver-protocol";
import { FREE, isIdle, LENT } from "../lending/index.ts";
import { remarksOf } from "../machines.ts";

/** One sliver of a machine, as a person wants to see it. */
export interface ShownSliver {
  readonly sliver: string;
  /** Of the tree; null: it is none of a launcher's. */
  readonly node: string | null;
  /** "free": what no sliver has and others may use. */
  readonly use: "busy" | "idle" | "free";
  /** What it is at, or what is being done to it. */
  readonly phase: string;
  /** Null: its manager does not say. */
  readonly settled: boolean | null;
  /** Caps that can be lent: its own, and what is in force, where they are or were its own. */
  readonly caps: Readonly<Record<string, { readonly own: number; readonly inForce: number }>>;
  readonly lends: readonly {
    readonly to: string;
    readonly resource: string;
    readonly amount: number;
    /** Why not; null: it does. */
    readonly refusal: string | null;
  }[];
  readonly trouble: string | null;
}

/** In the order of the manager's document. */
export function shownSlivers({ slivers }: NodeReport): readonly ShownSliver[] {
  return slivers.map((one) => ({
    sliver: one.name,
    // Slots are tagged by us, slivers of a pool as every machine is.
    node: one.tags.node ?? tagOf(one.tags)?.nodeId ?? null,
    use: one.name === FREE ? "free" : isIdle(one) ? "idle" : "busy",
    phase: one.doing ?? one.phase,
    settled: one.settled ?? null,
    caps: capsOf(one),
    lends: one.loans.map(({ to, resource, amount, refusal }) => ({
      to,
      resource,
      amount,
      refusal: refusal ?? null,
    })),
    trouble: one.error?.message ?? (remarksOf(one).join("; ") || null),
  }));
}

function capsOf({ rspec, effective }: SliverReport): ShownSliver["caps"] {
  return Object.fromEntries(LENT.map((name) => [name, { own: rspec[name], inForce: effective[name] }]));
}
