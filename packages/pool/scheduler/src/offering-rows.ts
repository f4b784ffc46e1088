import { type Candidate, candidatesOf, figuresOf, isTooDear } from "./candidates.ts";
import { stoppedBy } from "./gates.ts";
import { counted } from "./needs.ts";
import { zonesOf } from "./offerings.ts";
import type { Plan } from "./plan.ts";
import { compareFigures } from "./score.ts";
import type { State } from "./state.ts";
import type { LocalPool } from "./types.ts";
import type { Waiting } from "./waits.ts";

/** One way to buy the nodes of a label, with the figures that it is judged by; keys are part of `--json`. */
export interface OfferingRow {
  readonly label: string;
  readonly type: string;
  readonly zone: string | null;
  /** "chosen": the request would get it. "full": limits leave too little of it. "possible": others are better. Else why it is out. */
  readonly verdict: "chosen" | "possible" | "full" | "fails" | "too dear" | "never";
  readonly weight: number;
  readonly price: number | null;
  readonly max_price: number | null;
  readonly failures: number;
  /** Nodes that limits leave room for; null: nothing limits them. */
  readonly room: number | null;
  readonly ready_seconds: number | null;
}

/** What a pool may buy for each label of a request, the best first; what is out comes last. Empty where no label lists offerings. */
export function offeringRows(
  state: State,
  steady: number,
  pool: LocalPool,
  { id, record }: Waiting,
  plan: Plan | undefined,
): readonly OfferingRow[] {
  if (pool.offerings === undefined) return [];
  const served = plan?.kind === "serve" ? plan : undefined;
  const isChosen = (label: string, { offering, az }: Candidate) =>
    served?.zone === az &&
    served.nodes.some((node) => "launch" in node && node.label === label && node.type === offering.type);
  return [...counted(record.nodeTypes)].flatMap(([label, count]) => {
    const never = (pool.offerings!.get(label) ?? []).filter((one) => one.unavailable !== undefined);
    const candidates = zonesOf(pool, [label]).flatMap((az) => candidatesOf(pool, label, az) ?? []);
    const judged = candidates.map((candidate) => {
      const figures = figuresOf(state, steady, pool, candidate, { count, beside: {} });
      const fails = stoppedBy(state, steady, candidate.key, id) !== undefined;
      const out = isTooDear(candidate.offering) ? "too dear" : fails ? "fails" : undefined;
      const open = isChosen(label, candidate) ? "chosen" : figures.fits ? "possible" : "full";
      return { candidate, figures, out, verdict: out ?? open } as const;
    });
    judged.sort(
      (a, b) =>
        Number(a.out !== undefined) - Number(b.out !== undefined) || compareFigures(a.figures, b.figures),
    );
    return [
      ...judged.map(({ candidate: { offering, az }, figures: { failures, room, readyMs }, verdict }) => ({
        ...{ label, type: offering.type, zone: az, verdict, weight: offering.weight, price: offering.price },
        ...{ max_price: offering.maxPrice, failures, room: Number.isFinite(room) ? room : null },
        ready_seconds: readyMs === null ? null : Math.round(readyMs / 1_000),
      })),
      ...never.map(({ type, zone, weight, price, maxPrice }) => ({
        ...{ label, type, zone, verdict: "never" as const, weight, price, max_price: maxPrice },
        ...{ failures: 0, room: 0, ready_seconds: null },
      })),
    ];
  });
}
