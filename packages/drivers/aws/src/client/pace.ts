import { AsyncLocalStorage } from "node:async_hooks";
import type { CallRates, DriverContext, RateLimiter } from "@nodeyard/driver";
import { type SdkError, strangeAnswer, THROTTLED } from "./errors.ts";

/** Pause of all calls of a kind after a throttled one, milliseconds. The SDK's own back-off holds up one call only. */
const PAUSE_MS = 1_000;

/** The limiter of an operation, by its verb. AWS throttles all providers of a credential together, and counts each attempt and each page. */
function limiterOf({ writes, reads, data }: CallRates, operation: string): RateLimiter {
  if (/^(PutSnapshotBlock|UploadPart|PutObject|ReceiveMessage|DeleteMessageBatch)$/.test(operation))
    return data;
  return /^(Describe|List|Get|Head)/.test(operation) ? reads : writes;
}

/** The caller's signal. The SDK does not pass it to middleware, but the wait for a turn must end with it. */
export const callSignal = new AsyncLocalStorage<AbortSignal>();

type Next = (args: object) => Promise<{ readonly response: unknown }>;

/** The SDK's middleware stack, as far as this package uses it. It is the same for all clients. */
interface Stack {
  addRelativeTo(
    middleware: (next: Next, context: { readonly commandName?: string }) => Next,
    options: { readonly name: string; readonly relation: "before"; readonly toMiddleware: string },
  ): void;
}

/** Makes each request of a client wait for its turn. `service` is a label of metrics. */
export function addPace(
  stack: object,
  service: string,
  pace: CallRates,
  { clock, observe }: Pick<DriverContext, "clock" | "observe">,
): void {
  // Inside of the retries, so that each attempt takes a turn. Before the signature, which is valid for minutes only.
  (stack as Stack).addRelativeTo(
    (next, { commandName = "" }) =>
      async (args) => {
        const name = commandName.replace(/Command$/, "");
        const operation = `${service}.${name}`;
        const limiter = limiterOf(pace, name);
        await limiter.turn(callSignal.getStore());
        const began = clock.monotonic();
        const tell = (status: number | undefined, error?: unknown) =>
          observe?.({ operation, result: String(status ?? "none"), ms: clock.monotonic() - began, error });
        const fail = (error: SdkError): never => {
          const status = error.$metadata?.httpStatusCode;
          if (THROTTLED.test(error.name) || status === 429) limiter.refused(PAUSE_MS);
          tell(status, status === undefined ? error : undefined);
          throw error;
        };
        const { hostname } = (args as { request?: { hostname?: string } }).request ?? {};
        const odd = (raw: unknown) => strangeAnswer(operation, hostname, raw);
        const answer = await next(args).catch((error: SdkError) => fail(odd(error.$response) ?? error));
        const strange = odd(answer.response);
        if (strange !== undefined) return fail(strange);
        limiter.accepted();
        tell((answer.response as { statusCode?: number }).statusCode);
        return answer;
      },
    { name: "nodeyardPace", relation: "before", toMiddleware: "httpSigningMiddleware" },
  );
}
