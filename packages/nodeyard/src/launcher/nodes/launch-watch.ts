import { leaseIdOf } from "../../operations/index.ts";
import type { Context } from "../context.ts";
import type { Launch } from "./attempt.ts";
import { ImageGone } from "./boot-image.ts";

/** Who asks, where a lease does. */
const LEASES_ASK = "Nodeyard:lease";

/**
 * Counts and times the attempts of one launch (docs/contract/launcher.md, "Attempts and deletions"): from the first one on,
 * without waits for its turn.
 */
export class LaunchWatch {
  readonly #context: Pick<Context, "clock" | "counters">;
  readonly #launch: Launch;
  #began: number | undefined;
  #step = "";

  constructor(context: Pick<Context, "clock" | "counters">, launch: Launch) {
    this.#context = context;
    this.#launch = launch;
  }

  /** An attempt begins. */
  begin(): void {
    this.#began ??= this.#context.clock.monotonic();
    this.#step = "";
  }

  /** What it is at. */
  at(step: string): void {
    this.#step = step;
  }

  /** It ended, by its own doing: `ready`, or the kind of what went wrong. */
  ended(result: string): void {
    const provider = this.#launch.pool.open.config.name;
    this.#context.counters.add("launcher.launches", 1, { provider, result });
    this.#time(result);
  }

  /** Something else ended it, which says nothing of the place; our own stop says nothing at all. */
  brokeOff(error: unknown, signal: AbortSignal): void {
    if (!signal.aborted) this.#time(error instanceof ImageGone ? "image-gone" : "lost");
  }

  #time(result: string): void {
    const { clock, counters } = this.#context;
    const { pool, node, request } = this.#launch;
    const now = clock.monotonic();
    counters.time("launcher.launch", now - (this.#began ?? now), {
      provider: pool.open.config.name,
      az: node.record.az ?? "",
      result,
      requestor: askerOf(request.record.requestor),
      step: this.#step,
    });
  }
}

/** Leases have a requestor each, which would make a figure each: they count as one. */
function askerOf(requestor: string | null): string {
  return leaseIdOf(requestor) === undefined ? (requestor ?? "") : LEASES_ASK;
}
