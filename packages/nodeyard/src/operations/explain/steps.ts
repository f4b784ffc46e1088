import type { UnderWay } from "../../asking/index.ts";
import type { PastEvent } from "../../telemetry/index.ts";

/** A named part of a node's life. Times are milliseconds, of the tree. */
export interface LifeStep {
  readonly node: string;
  /** "launch", "clean-up", "delete", or "life" for what lies between. */
  readonly of: string;
  /** Try, from 1. */
  readonly attempt: number;
  readonly step: string;
  readonly began: number;
  /** Null: the step is in progress. */
  readonly ms: number | null;
  readonly error: string | null;
}

/** A node's life in steps, oldest first, from journal events and steps in progress. Events that are no steps are left out. */
export function lifeOf(events: readonly PastEvent[], underWay: readonly UnderWay[]): readonly LifeStep[] {
  const done = events.flatMap((event) => stepOf(event) ?? []).sort((a, b) => a.began - b.began);
  const now = underWay
    .filter((step) => !done.some((other) => isSame(other, step)))
    .map((step): LifeStep => ({ ...step, ms: null, error: null }));
  return [...done, ...serviceOf(events, [...done, ...now]), ...now].sort((a, b) => a.began - b.began);
}

function stepOf({ event, node, facts }: PastEvent): LifeStep | undefined {
  const { of, attempt, step, began, ms, error } = facts;
  if (event !== "node.step" || node === null) return undefined;
  if (typeof of !== "string" || typeof step !== "string" || typeof attempt !== "number") return undefined;
  if (typeof began !== "number" || typeof ms !== "number") return undefined;
  return { node, of, attempt, step, began, ms, error: typeof error === "string" ? error : null };
}

function isSame(done: LifeStep, { node, of, attempt, step, began }: UnderWay): boolean {
  const alike = done.node === node && done.of === of && done.attempt === attempt;
  return alike && done.step === step && done.began === began;
}

/** The time of service: from ready to the first step of the deletion. No driver step runs during that time. */
function serviceOf(events: readonly PastEvent[], steps: readonly LifeStep[]): readonly LifeStep[] {
  const ready = events.findLast(({ event }) => event === "node.ready");
  const launched = steps.findLast(({ of, node }) => of === "launch" && node === ready?.node);
  if (ready?.node == null || launched === undefined || launched.ms === null) return [];
  const began = launched.began + launched.ms;
  const end = steps.find((step) => step.of === "delete" && step.began >= began)?.began;
  const common = { node: ready.node, of: "life", attempt: 1, step: "there to be used", began, error: null };
  if (end !== undefined) return [{ ...common, ms: end - began }];
  return events.some(({ event }) => event === "node.deleted") ? [] : [{ ...common, ms: null }];
}
