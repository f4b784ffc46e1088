import { jitter, messageOf, type Timer } from "@nodeyard/runtime";
import type { LauncherOptions } from "./options.ts";

const SWEEP_MS = 60_000;

/** The slow resync of everything that events drive: now and then, until it is closed. */
export class Sweeps {
  readonly #handles: Pick<LauncherOptions, "clock" | "random" | "log">;
  readonly #sweep: () => Promise<void>;
  #timer: Timer | undefined;
  #closed = false;

  constructor(handles: Pick<LauncherOptions, "clock" | "random" | "log">, sweep: () => Promise<void>) {
    this.#handles = handles;
    this.#sweep = sweep;
  }

  start(): void {
    const { clock, random, log } = this.#handles;
    this.#timer = clock.setTimer(
      jitter(random, SWEEP_MS),
      () => {
        this.#sweep()
          .catch((error) => log.warn({ error: messageOf(error) }, "a sweep failed; the next one will retry"))
          .finally(() => {
            if (!this.#closed) this.start();
          });
      },
      { background: true },
    );
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
  }
}

/** All of them, each failing alone; rejects with the first failure when all have ended. */
export async function eachAlone(parts: readonly Promise<unknown>[]): Promise<void> {
  const settled = await Promise.allSettled(parts);
  const failed = settled.find((part) => part.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
