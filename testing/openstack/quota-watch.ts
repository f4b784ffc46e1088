import { setTimeout as sleep } from "node:timers/promises";
import type { CloudUser } from "./admin.ts";

const LOOK_MS = 1_000;

interface Limits {
  readonly limits: { readonly absolute: { readonly totalInstancesUsed: number } };
}

interface Listed {
  readonly id: string;
  readonly status: string;
  readonly created: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly "OS-EXT-STS:task_state": string | null;
}

/** Polls how much of the quota nova counts as used, and logs all servers when that is more than `limit`. */
export class QuotaWatch {
  readonly #user: CloudUser;
  readonly #running: Promise<void>;
  #most = 0;
  #stopped = false;

  readonly #limit: number;

  constructor(user: CloudUser, limit: number) {
    this.#user = user;
    this.#limit = limit;
    this.#running = this.#run();
  }

  /** The highest number of servers at one time. */
  async stop(): Promise<number> {
    this.#stopped = true;
    await this.#running;
    return this.#most;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const used = await this.#used();
      if (used > this.#most && used > this.#limit) await this.#tell(used);
      this.#most = Math.max(this.#most, used);
      await sleep(LOOK_MS);
    }
  }

  async #tell(used: number): Promise<void> {
    const servers = await this.#user.all<Listed>("compute", "/servers/detail", "servers").catch(() => []);
    const lines = servers.map(
      ({ id, status, created, metadata, "OS-EXT-STS:task_state": task }) =>
        `  ${id} ${status} ${task ?? "-"} ${created} ${metadata.nodepool_node_id ?? "-"}`,
    );
    const now = new Date().toISOString();
    process.stderr.write(`${now}: ${used} servers, ${this.#limit} at most:\n${lines.join("\n")}\n`);
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
