import { sleep } from "@nodeyard/runtime";
import type { ExternalId, Step } from "../contract.ts";
import { DriverError } from "../errors.ts";
import { idText } from "../leaks/leaked.ts";
import { abortable } from "../limits/shared-value.ts";
import type { Drive } from "./types.ts";

/**
 * A state machine as a generator of steps: one step per state it is seen in, all of them within one deadline. An id that is
 * an object may gain members over time; each version of it is stored.
 */
export async function* drive<Result>(run: Drive<Result>): AsyncGenerator<Step, Result | undefined, void> {
  const { machine, context, clock, paceMs } = run;
  const end = clock.monotonic() + run.deadlineMs;
  let state = machine.state;
  let stored = context.externalId === null ? undefined : idText(context.externalId);
  yield { step: state, deadlineMs: run.deadlineMs };
  for (;;) {
    // Abandoned, not awaited, when the step is given up: what it makes all the same is found by its tag.
    const result = await abortable(Promise.resolve(machine.advance(context.signal)), context.signal);
    const save = changed(machine.externalId, stored);
    if (save !== undefined) stored = idText(save.externalId);
    if (save !== undefined || (machine.state !== state && !machine.complete)) {
      state = machine.state;
      const deadlineMs = Math.max(1, end - clock.monotonic());
      yield { step: state, deadlineMs, ...(save && { save }) };
    }
    if (machine.complete) return result;
    await sleep(clock, paceMs, context.signal);
  }
}

/** As `drive`, for a machine that must have made something by its end. */
export async function* driveTo<Result>(run: Drive<Result>): AsyncGenerator<Step, Result, void> {
  const result = yield* drive(run);
  if (result !== undefined) return result;
  throw new DriverError("fatal", `the state machine ended in state ${run.machine.state} without an instance`);
}

function changed(id: ExternalId | null, stored: string | undefined): { externalId: ExternalId } | undefined {
  if (id === null || idText(id) === stored) return undefined;
  // A copy: the machine may go on writing into its own.
  return { externalId: structuredClone(id) };
}
