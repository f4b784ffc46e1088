import type { Busy } from "../isolation/index.ts";
import type { Manager } from "./manager.ts";

/** Slivers that are listed one by one, at most. */
const MOST = 500;

/**
 * What the manager is busy with, line by line, for whoever wonders why nothing moves. Only reads what is in memory, so that it says
 * the same while every step hangs. `now`: monotonic milliseconds.
 */
export function dumpOf(manager: Manager, now: number): readonly string[] {
  const { state, options, busy, trouble } = manager;
  const { epoch, number } = state.minimum;
  const slivers = [...state.records.values()];
  const failing = slivers.flatMap(({ name, local: { incarnation } }) => {
    const failure = manager.failures.text(incarnation);
    return failure === undefined ? [] : [`dump: sliver ${name} fails: ${JSON.stringify(failure)}`];
  });
  const remains = options.backEnd.remains?.() ?? [];
  return [
    `dump: node ${options.node} at epoch ${epoch}, version ${number}, look ${manager.sequence}: ${slivers.length} slivers, ${busy.size} busy` +
      `${state.safe ? ", safe mode" : ""}${manager.clockSuspect ? ", the clock is suspect" : ""}`,
    ...(trouble === undefined
      ? []
      : [`dump: cannot inspect the machine: ${trouble.message} (${trouble.attempts} tries)`]),
    ...[...busy.values()].slice(0, MOST).map((one) => busyLine(one, now)),
    ...failing.slice(0, MOST),
    ...(remains.length === 0
      ? []
      : [`dump: ${remains.length} remains of removed slivers stay for now: ${remains[0]}`]),
    "dump: ends",
  ];
}

function busyLine({ task, step, since, stepSince, until }: Busy, now: number): string {
  const after = task.after.length === 0 ? "" : `, after incarnations ${task.after.join(" ")}`;
  const end = until === undefined ? "" : `, given up in ${seconds(until - now)}`;
  return (
    `dump: task of ${task.name}, incarnation ${task.incarnation}, for ${seconds(now - since)}: ` +
    `${step} (of ${task.steps.join(" ")}) for ${seconds(now - stepSince)}${end}${after}`
  );
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
