import { AsyncLocalStorage } from "node:async_hooks";
import { type ApiCall, type Clock, RateLimiter } from "@nodeyard/driver";
import { faultOf, isThrottled } from "./errors.ts";

/** Calls that read may be this many times as frequent as those that change something. */
const READS = 10;
/** What a throttled call asks of those behind it, milliseconds. */
const PAUSE_MS = 1_000;

/**
 * The rate of one credential in one region. To AWS, all providers with the same are one customer. Every request counts, each try of the SDK
 * and each page of a list included.
 */
export class CallPace {
  readonly writes: RateLimiter;
  readonly reads: RateLimiter;
  /** Blocks of images, and notices: bounded by what the service refuses alone. */
  readonly data: RateLimiter;

  constructor(clock: Clock) {
    this.writes = new RateLimiter({ clock, intervalMs: 0 });
    this.reads = new RateLimiter({ clock, intervalMs: 0 });
    this.data = new RateLimiter({ clock, intervalMs: 0 });
  }

  /** Between two mutating calls, milliseconds; 0: no limit. */
  limit(intervalMs: number): void {
    this.writes.configure(intervalMs);
    this.reads.configure(intervalMs / READS);
  }

  of(operation: string): RateLimiter {
    if (/^(PutSnapshotBlock|UploadPart|PutObject|ReceiveMessage|DeleteMessageBatch)$/.test(operation))
      return this.data;
    return /^(Describe|List|Get|Head)/.test(operation) ? this.reads : this.writes;
  }
}

/** The caller's signal, for what waits inside of the SDK, which does not hand it to middleware. */
export const callSignal = new AsyncLocalStorage<AbortSignal>();

/** The middleware of the SDK, as far as this package knows it: the same for all clients. */
interface Stack {
  addRelativeTo(
    middleware: (
      next: (args: object) => Promise<{ readonly response: unknown }>,
      context: { readonly commandName?: string },
    ) => (args: object) => Promise<{ readonly response: unknown }>,
    options: { readonly name: string; readonly relation: "before"; readonly toMiddleware: string },
  ): void;
}

/** Who hears of each request, and which clock times it. */
export interface PaceContext {
  readonly pace: CallPace;
  readonly clock: Clock;
  readonly observe: ((call: ApiCall) => void) | undefined;
}

/** Makes each request of a client wait for its turn. `service`: for metrics. */
export function addPace(stack: object, service: string, { pace, clock, observe }: PaceContext): void {
  // Within the retries, so that each try has a turn; before the signature, which is valid for minutes only.
  (stack as Stack).addRelativeTo(
    (next, context) => async (args) => {
      const operation = (context.commandName ?? "").replace(/Command$/, "");
      const limiter = pace.of(operation);
      await limiter.turn(callSignal.getStore());
      const began = clock.monotonic();
      const tell = (result: string) =>
        observe?.({ operation: `${service}.${operation}`, result, ms: clock.monotonic() - began });
      try {
        const answer = await next(args);
        limiter.accepted();
        tell(String((answer.response as { statusCode?: number }).statusCode ?? "none"));
        return answer;
      } catch (error) {
        const fault = faultOf(error);
        if (fault !== null && isThrottled(fault)) limiter.refused(PAUSE_MS);
        tell(String(fault?.status ?? "none"));
        throw error;
      }
    },
    { name: "nodeyardPace", relation: "before", toMiddleware: "httpSigningMiddleware" },
  );
}
