import { tagOf } from "@nodeyard/driver";
import type { NodeReport, SliverReport } from "@nodeyard/sliver-protocol";
import { FREE, isIdle, LENT } from "./lending/index.ts";
import { remarksOf } from "./machines.ts";

export { updatesOf } from "./machines.ts";

/** A sliver of a machine in the form for people. */
export interface ShownSliver {
  readonly sliver: string;
  /** Node id in the tree; null when no launcher made the sliver. */
  readonly node: string | null;
  /** "free": the part of the machine that no sliver has and others may borrow. "spare": it waits for a document. */
  readonly use: "busy" | "idle" | "free" | "spare";
  /** Its phase, or the operation in progress. */
  readonly phase: string;
  /** Null: the manager does not report it. */
  readonly settled: boolean | null;
  /** Caps that can be lent: the sliver's own, and the one in force. Only caps that it has or had. */
  readonly caps: Readonly<Record<string, { readonly own: number; readonly inForce: number }>>;
  readonly lends: readonly {
    readonly to: string;
    readonly resource: string;
    readonly amount: number;
    /** Why the loan is not in force; null when it is. */
    readonly refusal: string | null;
  }[];
  readonly trouble: string | null;
}

/** In the order of the manager's report, then its spares. */
export function shownSlivers({ slivers, spares = [] }: NodeReport): readonly ShownSliver[] {
  const waiting = spares.map(
    ({ image, phase }): ShownSliver => ({
      sliver: `spare of ${image ?? "the default image"}`,
      ...{ node: null, use: "spare", phase, settled: null, caps: {}, lends: [], trouble: null },
    }),
  );
  return [...slivers.map(shown), ...waiting];
}

function shown(one: SliverReport): ShownSliver {
  return {
    sliver: one.name,
    // Slivers of slots have the tag `node`; slivers of pools have the tag of a machine.
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
  };
}

function capsOf({ rspec, effective }: SliverReport): ShownSliver["caps"] {
  return Object.fromEntries(LENT.map((name) => [name, { own: rspec[name], inForce: effective[name] }]));
}
