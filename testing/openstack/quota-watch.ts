import { setTimeout as sleep } from "node:timers/promises";
import type { CloudUser } from "./admin.ts";

const LOOK_MS = 500;

interface Limits {
  readonly limits: { readonly absolute: { readonly totalInstancesUsed: number } };
}

export interface Usage {
  /** The most servers that were there at once. */
  readonly most: number;
  /** When the server showed one instance less, milliseconds since the epoch, one entry each; up to a look late. */
  readonly freed: readonly number[];
}

/** Follows what nova itself says is used of the quota. */
export class QuotaWatch {
  readonly #user: CloudUser;
  readonly #freed: number[] = [];
  readonly #running: Promise<void>;
  #most = 0;
  #stopped = false;

  constructor(user: CloudUser) {
    this.#user = user;
    this.#running = this.#run();
  }

  async stop(): Promise<Usage> {
    this.#stopped = true;
    await this.#running;
    return { most: this.#most, freed: this.#freed };
  }

  async #run(): Promise<void> {
    let before = 0;
    while (!this.#stopped) {
      const used = await this.#used();
      if (used !== undefined) {
        for (let count = used; count < before; count++) this.#freed.push(Date.now());
        this.#most = Math.max(this.#most, used);
        before = used;
      }
      await sleep(LOOK_MS);
    }
  }

  /** Undefined while nova does not answer. */
  async #used(): Promise<number | undefined> {
    try {
      return (await this.#user.get<Limits>("compute", "/limits")).limits.absolute.totalInstancesUsed;
    } catch {
      return undefined;
    }
  }
}

/**
 * How long each place that was freed stayed free, milliseconds, shortest first: the k-th is taken by the k-th create after the quota
 * was full. Only while there is a queue and nothing else delays creates. Looks make it at most half a second too short.
 */
export function delaysOf(freed: readonly number[], creates: readonly number[]): readonly number[] {
  return creates.flatMap((at, k) => (k < freed.length ? [at - freed[k]!] : [])).sort((a, b) => a - b);
}
