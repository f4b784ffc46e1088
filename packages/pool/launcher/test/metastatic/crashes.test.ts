import { paths } from "@nodeyard/model";
import { retireBacking } from "@nodeyard/operations";
import { type Clock, type Random, seededRandom, type Timer } from "@nodeyard/runtime";
import type { MemoryTree } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import type { LauncherConfig } from "../../src/index.ts";
import { config, Lab } from "./lab.ts";

const LIVE: ReadonlySet<unknown> = new Set(["ready", "in-use", "hold"]);

/** Every record of every node, write by write: no slot is ever that of two nodes at once. */
function checkHistory(lab: Lab, seed: number): void {
  const places = new Map<string, string>();
  const holders = new Map<string, string>();
  const leave = (id: string) => {
    const before = places.get(id);
    if (before !== undefined && holders.get(before) === id) holders.delete(before);
    places.delete(id);
  };
  const written = lab.cluster.log.flatMap(({ ops, results }) =>
    ops.map((op, index) => {
      const result = results[index];
      return {
        path: result?.op === "create" ? result.path : op.path,
        data: "data" in op ? op.data : undefined,
      };
    }),
  );
  for (const { path, data } of written) {
    const [, id] = /^\/nodepool\/nodes\/(\d+)$/.exec(path) ?? [];
    // Whoever deletes a record has written `deleting` before.
    if (id === undefined || data === undefined || data.length === 0) continue;
    leave(id);
    const record = JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>;
    if (record.provider !== "slicer" || !LIVE.has(record.state)) continue;
    const { backing, slot } = lab.place(record);
    const key = `${backing}/${slot}`;
    expect(holders.get(key), `seed ${seed}: slot ${key} of node ${id} is another's`).toBeUndefined();
    holders.set(key, id);
    places.set(id, key);
  }
}

/** The clock of a process: when that dies, no timer of it fires any more. */
class KillableClock implements Clock {
  readonly #clock: Clock;
  #dead = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now();
  }

  monotonic(): number {
    return this.#clock.monotonic();
  }

  setTimer(ms: number, fn: () => void): Timer {
    return this.#clock.setTimer(ms, () => {
      if (!this.#dead) fn();
    });
  }

  die(): void {
    this.#dead = true;
  }
}

/** Launchers that die between any two writes, lose sessions and replies, while clients come and go. */
class Storm {
  readonly lab: Lab;
  readonly #random: Random;
  readonly #settings: LauncherConfig;
  readonly #open = new Set<string>();
  readonly #alive = new Map<string, Pick<MemoryTree, "expire" | "crash">>();
  #launchers = 0;
  /** Writes until the next one that kills its launcher. */
  #fuse = Number.POSITIVE_INFINITY;
  #quiet = false;
  crashes = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
    this.lab = new Lab({
      latency: {
        create: { minMs: 5, maxMs: 50 },
        boot: { minMs: 10, maxMs: 400 },
        delete: { minMs: 5, maxMs: 100 },
        read: { minMs: 0, maxMs: 10 },
      },
    });
    // Backing nodes whose requestor died before they were delivered are idle nodes, which the next request gets.
    const labels = new Map([["large", { name: "large", minReady: 0, maxReadyAgeMs: 30_000 }]]);
    this.#settings = { ...config({ "max-parallel-jobs": 3, "grace-time": 5, "max-age": 60 }), labels };
    this.lab.fault = ({ client, kind }) => {
      if (this.#quiet || kind !== "write" || !this.#alive.has(client)) return undefined;
      if (--this.#fuse <= 0) {
        this.#fuse = Number.POSITIVE_INFINITY;
        const tree = this.#alive.get(client);
        if (tree === undefined) return undefined;
        this.#alive.delete(client);
        this.crashes++;
        // Half of them die before the write is carried out, the others after.
        this.lab.clock.setTimer(0, () => tree.crash());
        return this.#chance(0.5) ? "lose-request" : "lose-reply";
      }
      return this.#chance(0.01) ? (this.#chance(0.5) ? "lose-reply" : "lose-request") : undefined;
    };
  }

  async run(steps: number): Promise<void> {
    await this.#launch();
    for (let step = 0; step < steps; step++) {
      await this.#step();
      await this.lab.run(20 + Math.floor(this.#random.float() * 800));
    }
    this.#quiet = true;
    if (this.#alive.size === 0) await this.#launch();
  }

  /** Everyone who still waits is served, then all is given back, and nothing is left. */
  async end(seed: number): Promise<void> {
    const { lab } = this;
    for (const id of this.#open) {
      const look = () => ["fulfilled", "failed"].includes(lab.request(id)?.state as string);
      await lab.until(`seed ${seed}: request ${id} has ended`, look, 300_000).catch((error) => {
        throw new Error(`${(error as Error).message}\n${this.#picture()}`);
      });
    }
    checkHistory(lab, seed);
    lab.check();
    for (const id of this.#open) await this.#giveBack(id);
    const left = () => [
      ...lab.nodes().map(({ id, state }) => `${id} ${state}`),
      ...lab.children("/nodeyard/slots"),
    ];
    await lab
      .until(`seed ${seed}: nothing is left (${left()})`, () => left().length === 0, 600_000)
      .catch((error) => {
        throw new Error(`${(error as Error).message}\nleft: ${JSON.stringify(lab.nodes())} ${left()}`);
      });
    expect(lab.cloud.inspect(), `seed ${seed}: machines`).toHaveLength(0);
    expect(lab.children(paths.requests), `seed ${seed}: requests`).toEqual([]);
  }

  /** What stands in the tree, for messages. */
  #picture(): string {
    const { lab } = this;
    const nodes = lab
      .nodes()
      .map(({ id, state, type, allocated_to, user_data, driver_data }) =>
        JSON.stringify([id, state, type, allocated_to, user_data, driver_data, lab.lockData(id)]),
      );
    const slots = lab.children("/nodeyard/slots").map((id) => `${id}: ${lab.claims(id)}`);
    const asked = lab.children(paths.requests).map((id) => lab.text(paths.request(id)));
    const alive = [...this.#alive.keys()];
    return [...nodes, ...slots, ...asked, `alive: ${alive}`].join("\n");
  }

  async #step(): Promise<void> {
    const { lab } = this;
    const dice = this.#random.float();
    if (dice < 0.45) for (let n = 0; n < 1 + this.#random.float() * 4; n++) this.#open.add(await lab.slice());
    else if (dice < 0.7) await this.#someoneLeaves();
    else if (dice < 0.8) this.#fuse = 1 + Math.floor(this.#random.float() * 40);
    else if (dice < 0.86) this.#pick([...this.#alive.values()])?.expire();
    else if (dice < 0.9) await this.#retire();
    if (this.#alive.size < (this.#chance(0.5) ? 1 : 3)) await this.#launch();
  }

  async #someoneLeaves(): Promise<void> {
    const done = [...this.#open].filter((id) => this.lab.request(id)?.state === "fulfilled");
    const id = this.#pick(done);
    if (id !== undefined) await this.#giveBack(id);
  }

  async #giveBack(id: string): Promise<void> {
    const { lab } = this;
    this.#open.delete(id);
    const { nodes } = lab.request(id) ?? {};
    for (const node of (nodes ?? []) as string[]) {
      const record = lab.node(node);
      if (record?.allocated_to === id) await lab.put(paths.node(node), { ...record, state: "used" });
    }
    await lab.settle(lab.other.delete(paths.request(id)));
  }

  async #retire(): Promise<void> {
    const backing = this.#pick(this.lab.children("/nodeyard/slots"));
    if (backing !== undefined) await this.lab.settle(retireBacking(this.lab.other, backing, "the storm"));
  }

  async #launch(): Promise<void> {
    const name = `l${++this.#launchers}`;
    const clock = new KillableClock(this.lab.clock);
    const { tree } = this.lab.launch(name, this.#settings, { clock });
    const crash = () => {
      clock.die();
      tree.crash();
    };
    this.#alive.set(name, { expire: () => tree.expire(), crash });
    await this.lab.run(500);
  }

  #pick<T>(items: readonly T[]): T | undefined {
    return items[Math.floor(this.#random.float() * items.length)];
  }

  #chance(share: number): boolean {
    return this.#random.float() < share;
  }
}

describe("a storm", () => {
  let crashes = 0;
  const seeds = Array.from({ length: Number(process.env.NODEYARD_SEEDS ?? 8) }, (_, index) => index + 1);
  test.each(seeds)("seed %i: no slot is given twice, nothing is lost, nothing is left", async (seed) => {
    const storm = new Storm(seed);
    await storm.run(40);
    await storm.end(seed);
    crashes += storm.crashes;
  });

  test("launchers did die", () => expect(crashes).toBeGreaterThan(seeds.length));
});
