import { setTimeout as sleep } from "node:timers/promises";
import type { CloudUser } from "./admin.ts";

const LOOK_MS = 1_000;

interface Limits {
  readonly limits: { readonly absolute: { readonly totalInstancesUsed: number } };
}

/** Follows what nova itself says is used of the quota. */
export class QuotaWatch {
  readonly #user: CloudUser;
  readonly #running: Promise<void>;
  #most = 0;
  #stopped = false;

  constructor(user: CloudUser) {
    this.#user = user;
    this.#running = this.#run();
  }

  /** The most servers that were there at once. */
  async stop(): Promise<number> {
    this.#stopped = true;
    await this.#running;
    return this.#most;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      this.#most = Math.max(this.#most, await this.#used());
      await sleep(LOOK_MS);
    }
  }

  /** 0 while nova does not answer. */
  async #used(): Promise<number> {
    try {
      return (await this.#user.get<Limits>("compute", "/limits")).limits.absolute.totalInstancesUsed;
    } catch {
      return 0;
    }
  }
}
