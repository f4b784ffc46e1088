import { AsyncLocalStorage } from "node:async_hooks";
import { type ApiCall, type Clock, type Log, RateLimiter } from "@nodeyard/driver";
import { faultOf, isThrottled, type RawAnswer, strangeAnswer } from "./errors.ts";

/** Calls that read may be this many times as frequent as calls that change something. */
const READS = 10;
/** Pause of all calls of a kind after a throttled one, milliseconds. The SDK's own back-off holds up one call only. */
const PAUSE_MS = 1_000;

/**
 * Rate limit of one credential in one region. AWS throttles all providers with the same credential together. Every request counts,
 * including each attempt of the SDK and each page of a list.
 */
export class CallPace {
  /** Calls that change something, as the configured `rate` says. */
  readonly writes: RateLimiter;
  /** Calls that only read, at ten times the rate. */
  readonly reads: RateLimiter;
  /** Calls for blocks of images and for notices: limited only by the service's own throttling. */
  readonly data: RateLimiter;

  constructor(clock: Clock) {
    this.writes = new RateLimiter({ clock, intervalMs: 0 });
    this.reads = new RateLimiter({ clock, intervalMs: 0 });
    this.data = new RateLimiter({ clock, intervalMs: 0 });
  }

  /** Sets the milliseconds between two calls that change something; 0 means no limit. */
  limit(intervalMs: number): void {
    this.writes.configure(intervalMs);
    this.reads.configure(intervalMs / READS);
  }

  /** The limiter of an operation, by the verb of its name in the SDK ("DescribeInstances"). */
  of(operation: string): RateLimiter {
    if (/^(PutSnapshotBlock|UploadPart|PutObject|ReceiveMessage|DeleteMessageBatch)$/.test(operation))
      return this.data;
    return /^(Describe|List|Get|Head)/.test(operation) ? this.reads : this.writes;
  }
}

/** The caller's signal. The SDK does not pass it to middleware, but the wait for a turn must end with it. */
export const callSignal = new AsyncLocalStorage<AbortSignal>();

/** The SDK's middleware stack, as far as this package uses it. It is the same for all clients. */
interface Stack {
  addRelativeTo(
    middleware: (
      next: (args: object) => Promise<{ readonly response: unknown }>,
      context: { readonly commandName?: string },
    ) => (args: object) => Promise<{ readonly response: unknown }>,
    options: { readonly name: string; readonly relation: "before"; readonly toMiddleware: string },
  ): void;
}

/** Rate limit, clock, log and observer of requests. */
export interface PaceContext {
  readonly pace: CallPace;
  readonly clock: Clock;
  readonly log: Log;
  readonly observe: ((call: ApiCall) => void) | undefined;
}

/** Makes each request of a client wait for its turn. `service` is a label of metrics. */
export function addPace(stack: object, service: string, { pace, clock, observe }: PaceContext): void {
  // Inside of the retries, so that each attempt takes a turn. Before the signature, which is valid for minutes only.
  (stack as Stack).addRelativeTo(
    (next, context) => async (args) => {
      const operation = (context.commandName ?? "").replace(/Command$/, "");
      const limiter = pace.of(operation);
      await limiter.turn(callSignal.getStore());
      const began = clock.monotonic();
      const tell = (result: string, error?: unknown) =>
        observe?.({ operation: `${service}.${operation}`, result, ms: clock.monotonic() - began, error });
      try {
        const call = `${service}.${operation}`;
        const { hostname } = (args as { request?: { hostname?: string } }).request ?? {};
        const strange = (raw: unknown) => strangeAnswer(call, hostname, raw as RawAnswer | undefined);
        const answer = await next(args).catch((error: unknown) => {
          throw strange((error as { $response?: unknown }).$response) ?? error;
        });
        const odd = strange(answer.response);
        if (odd !== undefined) throw odd;
        limiter.accepted();
        tell(String((answer.response as { statusCode?: number }).statusCode ?? "none"));
        return answer;
      } catch (error) {
        const fault = faultOf(error);
        if (fault !== null && isThrottled(fault)) limiter.refused(PAUSE_MS);
        tell(String(fault?.status ?? "none"), fault?.status === undefined ? error : undefined);
        throw error;
      }
    },
    { name: "nodeyardPace", relation: "before", toMiddleware: "httpSigningMiddleware" },
  );
}
