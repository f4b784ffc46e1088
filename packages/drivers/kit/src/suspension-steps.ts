import type { ProviderConfig } from "./config/compiled.ts";
import { DriverError } from "./errors.ts";
import { NoAnswer } from "./faults.ts";
import { CALL_MS, GONE_MS, type MachineWork, machineOf, type Steps } from "./machine-steps.ts";
import type { Suspension } from "./offers.ts";
import type { StepContext } from "./run-steps.ts";
import type { Tag } from "./tags.ts";

/** Where a machine is on its way to rest and back. */
export type Rest = "suspending" | "suspended" | "resuming";

/** How a cloud puts machines aside with their disk. The steps, their limits and what interrupts them are the kit's. */
export interface Suspends<T> {
  /** Requests it of a machine that is up. Rejects with "unsupported" where the machine is of a kind that cannot rest. */
  suspend(id: string, signal: AbortSignal): Promise<unknown>;
  /** Requests that a suspended machine goes on. */
  resume(id: string, signal: AbortSignal): Promise<unknown>;
  /**
   * By the cloud's word for the machine's state; undefined: it neither rests nor is on its way. It counts before `isUp` and `hasFailed`, which
   * may say of such a machine that it is up, or that it has ended. Absent: neither lists nor reads say it; then both calls may be repeated, and end
   * when the machine rests or is up.
   */
  restOf?(machine: T): Rest | undefined;
}

/**
 * `suspend` and `wake` of a provider whose machines are found by their metadata. Steps: find, settle (only a machine on its way), suspend and
 * rest, or wake and wait. Repeated after a crash, both begin at the top: what was requested is not requested again, and is waited for.
 */
export function suspensionSteps<T, Part>(
  { name, launchTimeoutMs }: Pick<ProviderConfig, "name" | "launchTimeoutMs">,
  work: MachineWork<T, Part>,
  { suspend, resume, ...shown }: Suspends<T>,
): Suspension {
  const { restOf = () => undefined } = shown;
  const isShown = shown.restOf !== undefined;
  const { machines } = work;
  const { idOf, what, read } = machines.cloud;
  const placeOf = ({ nodeId }: Tag) => `${name}: node ${nodeId}`;
  const isUp = (machine: T) => restOf(machine) === undefined && machines.cloud.isUp(machine);
  const isSuspended = (machine: T) => restOf(machine) === "suspended";
  const isOver = (machine: T) => restOf(machine) === undefined && machines.cloud.hasFailed(machine);
  const isSettled = (machine: T) => isUp(machine) || isSuspended(machine);
  const reached = (id: string, tag: Tag, isThere: (machine: T) => boolean, signal: AbortSignal) =>
    machines.reached("rest", id, placeOf(tag), isThere, isOver, signal);

  /** The machine when it is up or suspended. What was given up on its way goes on, and clouds refuse to turn it round. */
  async function* settled(tag: Tag, { externalId, signal }: StepContext): Steps<T> {
    yield { step: "find", deadlineMs: CALL_MS };
    // By a list that begins now: an older one may be of the time before another process did something.
    const machine = await machines.find(tag, externalId, signal);
    if (machine === undefined) throw new DriverError("not-found", `${placeOf(tag)}: there is no ${what}`);
    if (isSettled(machine)) return machine;
    yield { step: "settle", deadlineMs: GONE_MS };
    return reached(idOf(machine), tag, isSettled, signal);
  }

  /** Makes a call. Its answer may be lost, and its repetition refused: that is no error of a machine that has heard of it. */
  async function heard(
    call: () => Promise<unknown>,
    id: string,
    has: (machine: T) => boolean,
    signal: AbortSignal,
  ) {
    try {
      await call();
    } catch (error) {
      signal.throwIfAborted();
      if (!isShown && error instanceof NoAnswer) return void (await call());
      const machine = await read(id, signal).catch(() => undefined);
      if (machine === undefined || !isShown || !has(machine)) throw error;
    }
  }

  return {
    async *suspend(tag, context): Steps<void> {
      const { signal } = context;
      const machine = yield* settled(tag, context);
      if (isSuspended(machine)) return;
      const id = idOf(machine);
      yield { step: "suspend", deadlineMs: GONE_MS };
      await heard(
        () => suspend(id, signal),
        id,
        (one) => /^suspend/.test(restOf(one) ?? ""),
        signal,
      );
      if (!isShown) return;
      yield { step: "rest", deadlineMs: GONE_MS };
      await reached(id, tag, isSuspended, signal);
    },
    async *wake(order, context) {
      const { signal } = context;
      const machine = yield* settled(order.tag, context);
      const id = idOf(machine);
      if (!isShown || isSuspended(machine)) {
        yield { step: "wake", deadlineMs: launchTimeoutMs };
        await heard(
          () => resume(id, signal),
          id,
          (one) => !isSuspended(one) && !isOver(one),
          signal,
        );
      }
      yield { step: "wait", deadlineMs: launchTimeoutMs };
      return yield* machineOf(work, order, await reached(id, order.tag, isUp, signal), signal);
    },
  };
}
