import { type Clock, sleep } from "@nodeyard/runtime";
import type { MapError } from "../calls.ts";
import type { ProviderConfig } from "../config/compiled.ts";
import { DriverError } from "../errors.ts";
import { idText } from "../leaks.ts";
import type { RateLimiter } from "../limits/rate-limiter.ts";
import { abortable } from "../limits/shared-value.ts";
import type { Step, StepContext } from "../run-steps.ts";
import type { ExternalId } from "../tags.ts";
import type { Adapter, StateMachine } from "./types.ts";

/** For one question to the cloud, milliseconds. */
export const CALL_MS = 120_000;

/** What an adapter's provider is made of. */
export interface AdapterParts {
  readonly adapter: Adapter;
  readonly config: ProviderConfig;
  readonly clock: Clock;
  readonly limiter: RateLimiter;
  /** Between two advances of a state machine, milliseconds. */
  readonly paceMs: number;
  /** How long a list may lag behind what was made, milliseconds. */
  readonly listLagMs: number;
  /** What the cloud's client throws, typed. */
  readonly mapError: MapError;
}

/**
 * A state machine as a generator of steps: one step per state it is seen in, all of them within `deadlineMs`. An id that is
 * an object may gain members over time; each version of it is stored.
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
    // Abandoned, not awaited, when the step is given up: what it makes all the same is found by its tag.
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

/** As `drive`, for a machine that must have made something by its end. */
export async function* driveTo<Result>(
  ...run: Parameters<typeof drive<Result>>
): AsyncGenerator<Step, Result, void> {
  const result = yield* drive(...run);
  if (result !== undefined) return result;
  throw new DriverError("fatal", `the state machine ended in state ${run[1].state} without an instance`);
}

/**
 * What `look` finds. A second look, when there is nothing: what was made a moment ago may not be listed yet, and is after the lag of the
 * lists.
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

function changed(id: ExternalId | null, stored: string | undefined): { externalId: ExternalId } | undefined {
  if (id === null || idText(id) === stored) return undefined;
  // A copy: the machine may go on writing into its own.
  return { externalId: structuredClone(id) };
}
