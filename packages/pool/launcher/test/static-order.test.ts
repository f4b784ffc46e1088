import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { launcherConfig, staticProvider } from "./rig.ts";
import { World } from "./rules/world.ts";

const JOB_MS = 20_000;
const STEP_MS = 100;
const HALF_AN_HOUR_MS = 1_800_000;

const boards = {
  name: "127.0.0.1",
  labels: ["small"],
  "host-key-checking": false,
  "max-parallel-jobs": 2,
};

/** A laboratory with two boards, and the jobs that run there. */
class Laboratory {
  readonly world = new World();
  /** Jobs under way, with the locks of their nodes and when they end. */
  readonly #jobs: {
    readonly nodes: readonly string[];
    readonly locks: readonly string[];
    readonly endsAt: number;
  }[] = [];
  readonly waiting: string[] = [];
  readonly served: string[] = [];
  #from = 0;

  async start(): Promise<void> {
    await this.world.start("a", launcherConfig([staticProvider([boards])]));
    await this.world.until("both boards are registered", () => this.world.nodes().length === 2);
  }

  async ask(prefix: string, count = 1): Promise<string> {
    const id = await this.world.ask({ node_types: Array(count).fill("small") }, prefix);
    this.waiting.push(id);
    return id;
  }

  /** Time passes: jobs begin as soon as their nodes are there, and end. */
  async step(): Promise<void> {
    await this.world.run(STEP_MS);
    for (const id of [...this.waiting]) {
      if (this.world.request(id)?.state !== "fulfilled") continue;
      this.waiting.splice(this.waiting.indexOf(id), 1);
      this.served.push(id);
      await this.#begin(id);
    }
    for (const job of [...this.#jobs]) {
      if (this.world.clock.now() < job.endsAt) continue;
      this.#jobs.splice(this.#jobs.indexOf(job), 1);
      for (const id of job.nodes)
        await this.world.put(paths.node(id), { ...this.world.node(id), state: "used" });
      for (const lock of job.locks) await this.world.settle(this.world.other.delete(lock));
    }
  }

  async #begin(request: string): Promise<void> {
    const nodes = this.world.request(request)!.nodes as string[];
    const locks: string[] = [];
    for (const id of nodes) locks.push(await this.world.lock(paths.nodeLock(id)));
    await this.world.settle(this.world.other.delete(paths.request(request)));
    for (const id of nodes) await this.world.put(paths.node(id), { ...this.world.node(id), state: "in-use" });
    this.#jobs.push({ nodes, locks, endsAt: this.world.clock.now() + JOB_MS });
  }

  /** Milliseconds since `until` was called. */
  elapsed(): number {
    return this.world.clock.now() - this.#from;
  }

  /** Steps until `done`; how long that took, milliseconds. */
  async until(
    done: () => boolean,
    limitMs: number,
    each: () => Promise<void> = async () => {},
  ): Promise<number> {
    this.#from = this.world.clock.now();
    while (!done() && this.elapsed() < limitMs) {
      await this.step();
      await each();
    }
    return this.elapsed();
  }

  /** Both boards run a job; the second began half a job later. */
  async busy(): Promise<void> {
    for (const count of [1, 2]) {
      await this.ask("300");
      await this.until(() => this.served.length === count, JOB_MS);
      if (count === 1) await this.until(() => false, JOB_MS / 2);
    }
  }
}

describe("hosts are given out in order", () => {
  test("a request for two boards is served before those of lower priority, however many come", async () => {
    const lab = new Laboratory();
    await lab.start();
    await lab.busy();
    const pair = await lab.ask("200", 2);
    const later: string[] = [];
    const took = await lab.until(
      () => lab.served.includes(pair),
      HALF_AN_HOUR_MS,
      // A board that is free meets one who has just come, and was not in line before.
      async () => {
        if (lab.elapsed() >= (later.length + 1) * (JOB_MS / 2)) later.push(await lab.ask("300"));
      },
    );
    expect(later.filter((id) => lab.served.includes(id))).toEqual([]);
    // Both jobs had begun: the second of them has ended by then.
    expect(took).toBeLessThan(JOB_MS + 1_000);
  });

  test("a board that was kept for a request that goes is the next one's at once", async () => {
    const lab = new Laboratory();
    await lab.start();
    await lab.busy();
    const pair = await lab.ask("200", 2);
    const next = await lab.ask("300");
    const free = () => lab.world.nodes().some(({ state }) => state === "ready");
    await lab.until(() => !free(), JOB_MS);
    await lab.until(free, JOB_MS);
    await lab.until(() => false, 1_000);
    expect(lab.world.members[0]!.launcher.verdict(pair)).toMatchObject({
      code: "nodes.none-free",
      facts: { place: 1, in_line: 2, kept: 1, wanted: 2 },
    });
    expect(lab.served).not.toContain(next);
    await lab.world.settle(lab.world.other.delete(paths.request(pair)));
    expect(await lab.until(() => lab.served.includes(next), JOB_MS)).toBeLessThan(1_000);
  });
});
