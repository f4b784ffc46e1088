import type { UnderWay } from "@nodeyard/asking";
import type { PastEvent } from "@nodeyard/telemetry";
import { iso } from "./reason.ts";

/** A named part of a node's life, for programs. */
export type LifeStep = ReturnType<typeof shown>;

/**
 * A step with times that can be compared: milliseconds of the tree. `of` is "launch", "clean-up", "delete", or "life" for what lies
 * between; `attempt` counts from 1; `ms` is null while the step is in progress.
 */
interface TimedStep extends UnderWay {
  readonly ms: number | null;
  readonly error: string | null;
}

type Event = Omit<PastEvent, "at">;

/**
 * A node's life in steps, oldest first, from journal events and steps in progress. Events that are no steps are left out, and a
 * step that ended while members were asked counts once.
 */
export function lifeOf(events: readonly Event[], underWay: readonly UnderWay[]): readonly LifeStep[] {
  const done = events.flatMap((event) => stepOf(event) ?? []).sort((a, b) => a.began - b.began);
  const now = underWay
    .filter((step) => !done.some((other) => isSame(other, step)))
    .map((step): TimedStep => ({ ...step, ms: null, error: null }));
  const life = [...done, ...serviceOf(events, [...done, ...now]), ...now];
  return life.sort((a, b) => a.began - b.began).map(shown);
}

function shown({ node, of, attempt, step, error, began, ms }: TimedStep) {
  return { node, of, attempt, step, error, began: iso(began), seconds: ms === null ? null : ms / 1_000 };
}

/** Undefined for another event, and for a step that a later release has noted otherwise. */
function stepOf({ event, node, facts }: Event): TimedStep | undefined {
  const { of, attempt, step, began, ms, error } = facts;
  if (event !== "node.step" || node === null) return undefined;
  if (typeof of !== "string" || typeof step !== "string" || typeof attempt !== "number") return undefined;
  if (typeof began !== "number" || typeof ms !== "number") return undefined;
  return { node, of, attempt, step, began, ms, error: typeof error === "string" ? error : null };
}

/** A step is known by when it began: attempts repeat names. */
function isSame(done: TimedStep, { node, of, attempt, step, began }: UnderWay): boolean {
  const alike = done.node === node && done.of === of && done.attempt === attempt;
  return alike && done.step === step && done.began === began;
}

/** The time of service: from ready to the first step of the deletion. No driver step runs during that time. */
function serviceOf(events: readonly Event[], steps: readonly TimedStep[]): readonly TimedStep[] {
  const ready = events.findLast(({ event }) => event === "node.ready");
  const launched = steps.findLast(({ of, node }) => of === "launch" && node === ready?.node);
  if (ready?.node == null || launched === undefined || launched.ms === null) return [];
  const began = launched.began + launched.ms;
  const end = steps.find((step) => step.of === "delete" && step.began >= began)?.began;
  const common = { node: ready.node, of: "life", attempt: 1, step: "there to be used", began, error: null };
  if (end !== undefined) return [{ ...common, ms: end - began }];
  return events.some(({ event }) => event === "node.deleted") ? [] : [{ ...common, ms: null }];
}
