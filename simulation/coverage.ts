import { nodeTransitions, requestTransitions } from "@nodeyard/model";
import { BUILDER_POINTS, CRASH_POINTS, pointName } from "./effects.ts";
import { FAULTS } from "./faults.ts";
import { SIGHTINGS } from "./sightings.ts";

/** How often each thing happened, by name. */
export type Tally = Record<string, number>;

export interface Coverage {
  /** Kinds of `FAULTS`. */
  readonly faults: Tally;
  /** `node init -> building`, from the model's tables; `-` stands for no record. */
  readonly transitions: Tally;
  /** `before node.create`. */
  readonly crashes: Tally;
  /** Kinds of `SIGHTINGS`. */
  readonly sightings: Tally;
}

const PARTS = ["faults", "transitions", "crashes", "sightings"] as const;

/** Transitions and sightings that cannot occur in the simulation, with the reason. */
export const NOT_MADE: Readonly<Record<string, string>> = {
  "node used -> ready":
    "Nodeyard deletes the record of a used slot and registers a new one, so that no slot keeps data of a former client",
};

export function transition(kind: "node" | "request", from: string | null, to: string | null): string {
  return `${kind} ${from ?? "-"} -> ${to ?? "-"}`;
}

/** Everything that a run can cover, at zero. */
export function noCoverage(): Coverage {
  const zero = (names: readonly string[]): Tally => Object.fromEntries(names.map((name) => [name, 0]));
  const transitions = [
    ...nodeTransitions.map(({ from, to }) => transition("node", from, to)),
    ...requestTransitions.map(({ from, to }) => transition("request", from, to)),
  ];
  return {
    faults: zero(Object.keys(FAULTS)),
    transitions: zero(transitions.filter((name) => NOT_MADE[name] === undefined)),
    crashes: zero([...CRASH_POINTS, ...BUILDER_POINTS].map(pointName)),
    sightings: zero(Object.keys(SIGHTINGS).filter((name) => NOT_MADE[name] === undefined)),
  };
}

export function count(tally: Tally, name: string, by = 1): void {
  tally[name] = (tally[name] ?? 0) + by;
}

/** Adds `more` to `sum`. */
export function addCoverage(sum: Coverage, more: Coverage): void {
  for (const part of PARTS)
    for (const [name, times] of Object.entries(more[part])) count(sum[part], name, times);
}

/** What never happened. */
export function uncovered(coverage: Coverage): readonly string[] {
  return PARTS.flatMap((part) =>
    Object.entries(coverage[part])
      .filter(([, times]) => times === 0)
      .map(([name]) => `${part}: ${name}`),
  );
}
