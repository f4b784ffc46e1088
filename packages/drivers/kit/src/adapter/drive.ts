import { abortable, type Clock, sleep } from "@nodeyard/runtime";
import type { MapError } from "../calls.ts";
import type { ProviderConfig } from "../config/compiled.ts";
import { DriverError } from "../errors.ts";
import { idText } from "../leaks.ts";
import type { RateLimiter } from "../limits/rate-limiter.ts";
import type { Step, StepContext } from "../run-steps.ts";
import type { ExternalId } from "../tags.ts";
import type { Adapter, StateMachine } from "./types.ts";

/** Time limit of one call to the cloud, milliseconds. */
export const CALL_MS = 120_000;

/** The parts of a provider that is made from an adapter. */
export interface AdapterParts {
  readonly adapter: Adapter;
  readonly config: ProviderConfig;
  readonly clock: Clock;
  readonly limiter: RateLimiter;
  /** Pause between two calls of `advance`, milliseconds. */
  readonly paceMs: number;
  /** How long the cloud's lists may lag behind a create, milliseconds. */
  readonly listLagMs: number;
  /** Translates errors of the cloud's client. */
  readonly mapError: MapError;
}

/**
 * Runs a state machine as a generator of steps: one step for each state, all of them within `deadlineMs`. An id that is an object may gain
 * members over time; every version of it is saved.
 */
export async function* drive<Result>(
  { clock, paceMs }: Pick<AdapterParts, "clock" | "paceMs">,
  machine: StateMachine<Result>,
  context: StepContext,
  deadlineMs: number,
): AsyncGenerator<Step, Result | undefined, void> {
  const end = clock.monotonic() + deadlineMs;
  let state = machine.state;
  let stored = context.externalId === null ? undefined : idText(context.externalId);
  yield { step: state, deadlineMs };
  for (;;) {
    // When the step is aborted, the call is abandoned without waiting. A machine that it still creates is found by its tag later.
    const result = await abortable(Promise.resolve(machine.advance(context.signal)), context.signal);
    const save = changed(machine.externalId, stored);
    if (save !== undefined) stored = idText(save.externalId);
    if (save !== undefined || (machine.state !== state && !machine.complete)) {
      state = machine.state;
      yield { step: state, deadlineMs: Math.max(1, end - clock.monotonic()), ...(save && { save }) };
    }
    if (machine.complete) return result;
    await sleep(clock, paceMs, context.signal);
  }
}

/** As `drive`, but throws when the state machine completes without a result. */
export async function* driveTo<Result>(
  ...run: Parameters<typeof drive<Result>>
): AsyncGenerator<Step, Result, void> {
  const result = yield* drive(...run);
  if (result !== undefined) return result;
  throw new DriverError("fatal", `the state machine ended in state ${run[1].state} without an instance`);
}

/**
 * The result of `look`. When it finds nothing, it looks again after `listLagMs`, because the cloud may not list a resource that was
 * created a moment ago.
 */
export async function* found<T>(
  { clock, listLagMs }: Pick<AdapterParts, "clock" | "listLagMs">,
  look: () => Promise<readonly T[]>,
  signal: AbortSignal,
): AsyncGenerator<Step, readonly T[], void> {
  yield { step: "find", deadlineMs: CALL_MS };
  const first = await abortable(look(), signal);
  if (first.length > 0 || listLagMs === 0) return first;
  yield { step: "settle", deadlineMs: listLagMs + CALL_MS };
  await sleep(clock, listLagMs, signal);
  return abortable(look(), signal);
}

/** The id to save, when it differs from what was saved last. */
function changed(id: ExternalId | null, stored: string | undefined): { externalId: ExternalId } | undefined {
  if (id === null || idText(id) === stored) return undefined;
  // A copy, because the machine may go on changing its own object.
  return { externalId: structuredClone(id) };
}
