import { abortable, type Clock, jsonIn } from "@nodeyard/driver";
import type { Listener, wireOf } from "@nodeyard/driver/http";
import { z } from "zod";

/** What the server does in the background. */
export const OPERATION = z.object({
  ...{ id: z.string(), status_code: z.number(), err: z.string() },
  metadata: z.record(z.string(), z.unknown()).nullish(),
});
export type Operation = z.infer<typeof OPERATION>;
const EVENT = z.object({ metadata: OPERATION });

/** Connections to a server. */
export type LxdWire = Pick<ReturnType<typeof wireOf>, "send" | "listen" | "close">;

/** Status of an operation that has ended well. Lower ones run, higher ones have failed: 400, and 401 when it was cancelled. */
export const SUCCESS = 200;
/** When nothing is heard of an operation for this long, milliseconds, the server is asked. */
const SILENT_MS = 20_000;
/** Ends that are remembered: one may be told before the answer to the call that began the operation. */
const MOST_ENDED = 1_000;

/** The ends of operations, which the server tells on one connection, so that nobody has to ask for them. */
export class OperationEvents {
  readonly #clock: Clock;
  readonly #listen: ((listener: Omit<Listener, "signal">) => Promise<void>) | undefined;
  readonly #ended = new Map<string, Operation>();
  readonly #waiting = new Map<string, (operation: Operation | undefined) => void>();
  #open: Promise<void> | undefined;

  /** `listen`: opens the connection; undefined: there is none. */
  constructor(clock: Clock, listen: ((listener: Omit<Listener, "signal">) => Promise<void>) | undefined) {
    this.#clock = clock;
    this.#listen = listen;
  }

  /** To be awaited before the call that begins an operation. Never rejects: a server that tells nothing is asked. */
  async begin(): Promise<void> {
    // The next call opens another connection.
    const onEnd = () => {
      this.#open = undefined;
      for (const resolve of this.#waiting.values()) resolve(undefined);
    };
    this.#open ??= this.#listen?.({ onText: (text) => this.#hear(text), onEnd }).catch(onEnd);
    await this.#open;
  }

  /** The operation, when it has ended; undefined: nothing was heard of it. Rejects with the signal's reason. */
  async end(id: string, signal: AbortSignal): Promise<Operation | undefined> {
    if (this.#open === undefined || this.#ended.has(id)) return this.#ended.get(id);
    const { promise, resolve } = Promise.withResolvers<Operation | undefined>();
    const timer = this.#clock.setTimer(SILENT_MS, () => resolve(undefined));
    this.#waiting.set(id, resolve);
    return abortable(promise, signal).finally(() => {
      timer.cancel();
      this.#waiting.delete(id);
    });
  }

  #hear(text: string): void {
    const operation = EVENT.safeParse(jsonIn(text)).data?.metadata;
    if (operation === undefined || operation.status_code < SUCCESS) return;
    this.#ended.set(operation.id, operation);
    if (this.#ended.size > MOST_ENDED) this.#ended.delete([...this.#ended.keys()][0]!);
    this.#waiting.get(operation.id)?.(operation);
  }
}
