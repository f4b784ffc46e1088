import { generateKeyPairSync } from "node:crypto";
import {
  type CreateOrder,
  type DriverContext,
  type LabelConfig,
  type NodeUse,
  type PoolConfig,
  type Provider,
  runSteps,
  type Step,
  type StepContext,
  type Tag,
} from "@nodeyard/driver";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { newSigningKeys, type SliverClient } from "@nodeyard/sliver-protocol";
import { afterEach, describe, expect, test } from "vitest";
import { MemoryNode } from "../../../../../testing/slivers/memory-node.ts";
import { createSliverDriver } from "../../src/driver.ts";
import { compile } from "../rig.ts";

const CAP = 1000;
const GUARANTEE = 300;
/** What the machine has for slivers, per mille of one CPU. */
const CAPACITY = 3000;
/** What is free keeps as much. */
const FREE_KEEPS = 10;
const INSTALLATION = "7b7f1c1e-6b0e-4b7e-9f5e-2f6f3f0c9a11";
const MIN_READY = "NodePool:min-ready";

/** The driver on one machine in memory, in virtual time. */
class Pool {
  readonly clock = new VirtualClock();
  readonly keys = newSigningKeys(generateKeyPairSync("ed25519").privateKey);
  readonly node = new MemoryNode({
    name: "big-1",
    clock: this.clock,
    keySet: this.keys.keySet,
    capacity: { cpu: CAPACITY, memory: 4_194_304 },
  });
  readonly driver = createSliverDriver({ connect: () => this.#client(), readKeys: () => this.keys });
  silent = false;
  provider!: Provider;
  #pool!: PoolConfig;

  #client(): SliverClient {
    const { client } = this.node;
    const status = client.status.bind(client);
    return Object.assign(client, {
      status: (signal: AbortSignal) => (this.silent ? new Promise<never>(() => {}) : status(signal)),
    });
  }

  async open(lend: "idle" | "none", label: object = {}): Promise<void> {
    await this.node.started;
    const config = compile({
      name: "lab",
      machines: [{ name: "big-1", socket: "/run/nodeyard-sliver/control/api.sock" }],
      "signing-keys": "/keys",
      pools: [
        {
          name: "main",
          labels: [
            {
              name: "small",
              "cpu-guarantee": GUARANTEE,
              "cpu-cap": CAP,
              memory: 256,
              disk: 64,
              lend,
              ...label,
            },
          ],
        },
      ],
    });
    this.#pool = config.pools[0]!;
    const log = { debug() {}, info() {}, warn() {}, error() {} };
    const scan = { scan: () => Promise.reject(new Error("nothing is scanned")) };
    const context: DriverContext = {
      clock: this.clock,
      random: seededRandom(1),
      log,
      scan,
      installation: INSTALLATION,
    };
    this.provider = await this.settle(this.driver.open(config, context));
  }

  async start(lend: "idle" | "none" = "idle"): Promise<this> {
    void this.node.start();
    await this.open(lend);
    return this;
  }

  tag(nodeId: string): Tag {
    return { installation: INSTALLATION, provider: "lab", pool: "main", nodeId };
  }

  async create(nodeId: string, requestor: string, request = "100-1") {
    const order: CreateOrder = {
      tag: this.tag(nodeId),
      hostname: `np${nodeId}`,
      pool: this.#pool,
      label: this.#pool.labels.get("small") as LabelConfig,
      az: null,
      imageExternalId: null,
      attempt: 1,
      request: {
        id: request,
        labels: ["small"],
        requestor,
        requestorData: null,
        relativePriority: 0,
        eventId: null,
        createdTime: null,
        tenantName: null,
      },
    };
    const machine = await this.steps((step) => this.provider.create(order, step));
    await this.quiet();
    return machine;
  }

  async remove(nodeId: string): Promise<void> {
    await this.steps((step) => this.provider.remove(this.tag(nodeId), step));
    await this.quiet();
  }

  ready(nodeId: string, request = "100-1"): Promise<void> {
    const { handover } = this.provider.offers!;
    const { signal } = new AbortController();
    return handover!.ready(this.tag(nodeId), { signal, externalId: null, request });
  }

  /** `uses`: when the driver asks, by node. */
  reconcile(uses: () => Promise<Readonly<Record<string, NodeUse>>>): Promise<void> {
    const { handover } = this.provider.offers!;
    const asked = async (tags: readonly Tag[]) => {
      const all = await uses();
      return new Map(tags.flatMap(({ nodeId }) => (all[nodeId] ? [[nodeId, all[nodeId]]] : [])));
    };
    return this.settle(handover!.reconcile!(asked, new AbortController().signal));
  }

  steps<T>(work: (step: StepContext) => AsyncGenerator<Step, T, void>): Promise<T> {
    const { signal } = new AbortController();
    const save = async () => {};
    return this.settle(runSteps(work, { clock: this.clock, signal, externalId: null, save }));
  }

  async settle<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const end = () => {
      done = true;
    };
    work.then(end, end);
    for (let turn = 0; !done && turn < 2_000; turn++) await this.clock.advance(20);
    return work;
  }

  quiet(): Promise<void> {
    return this.clock.advance(500);
  }

  /** CPU caps that are in the kernel, by node. */
  get caps(): Record<string, number> {
    return Object.fromEntries(
      [...this.node.machine.made.values()].map(({ config, applied }) => [
        config.name.slice(1, 11),
        applied?.effective.cpuCap ?? 0,
      ]),
    );
  }
}

const [ONE, TWO, THREE] = ["0000000001", "0000000002", "0000000003"] as const;

describe("slivers of a pool that lend", () => {
  let pool: Pool;
  afterEach(() => pool.provider.close());

  test("what the machine has left goes to busy slivers, and is back before the next sliver starts", async () => {
    pool = await new Pool().start();
    await pool.create(ONE, "zuul");
    expect(pool.caps).toEqual({ [ONE]: CAPACITY - FREE_KEEPS });
    const seen: number[] = [];
    pool.node.machine.disturb = (step) => {
      if (step === "create") seen.push(pool.caps[ONE]!);
    };
    await pool.create(TWO, "zuul");
    expect(seen[0]).toBeLessThanOrEqual(CAPACITY - CAP);
    const half = CAP + (CAPACITY - 2 * CAP - FREE_KEEPS) / 2;
    expect(pool.caps).toEqual({ [ONE]: half, [TWO]: half });
    await pool.remove(TWO);
    expect(pool.caps).toEqual({ [ONE]: CAPACITY - FREE_KEEPS });
    await pool.remove(ONE);
    const { slivers } = await pool.settle(pool.node.client.document(new AbortController().signal));
    expect(slivers).toEqual([]);
  });

  test("a sliver without a request lends its amounts, and has all of them when it is handed out; a second time is the same", async () => {
    pool = await new Pool().start();
    for (const id of [ONE, TWO]) await pool.create(id, "zuul");
    await pool.create(THREE, MIN_READY);
    expect(pool.caps).toEqual({ [ONE]: CAP + 350, [TWO]: CAP + 350, [THREE]: GUARANTEE });
    for (let time = 0; time < 2; time++) {
      await pool.settle(pool.ready(THREE));
      expect(pool.caps).toEqual({ [ONE]: CAP, [TWO]: CAP, [THREE]: CAP });
    }
    await expect(pool.settle(pool.ready("0000000009"))).rejects.toMatchObject({ kind: "not-found" });
  });

  test("a returned sliver lends, one that is in use by another route does not, and slivers of other owners stay as they are", async () => {
    pool = await new Pool().start();
    for (const id of [ONE, TWO, THREE]) await pool.create(id, "zuul");
    await pool.reconcile(async () => ({ [ONE]: "used", [TWO]: "between", [THREE]: "unused" }));
    await pool.quiet();
    expect(pool.caps).toEqual({ [ONE]: CAP + 350, [TWO]: CAP + 350, [THREE]: GUARANTEE });
    const { version } = await pool.settle(pool.node.client.document(new AbortController().signal));
    await pool.reconcile(async () => ({ [ONE]: "used", [THREE]: "unused" }));
    expect(await pool.settle(pool.node.client.document(new AbortController().signal))).toMatchObject({
      version,
    });
    await pool.reconcile(async () => ({ [THREE]: "used" }));
    await pool.quiet();
    expect(pool.caps).toEqual({ [ONE]: CAP, [TWO]: CAP, [THREE]: CAP });
  });

  test("one that is handed out while its use is asked for stays whole, whatever is answered", async () => {
    pool = await new Pool().start();
    for (const id of [ONE, TWO]) await pool.create(id, "zuul");
    await pool.reconcile(async () => {
      await pool.ready(TWO);
      return { [ONE]: "used", [TWO]: "unused" };
    });
    await pool.quiet();
    expect(pool.caps[TWO]).toBeGreaterThanOrEqual(CAP);
    await pool.reconcile(async () => ({ [ONE]: "used", [TWO]: "unused" }));
    await pool.quiet();
    expect(pool.caps[TWO]).toBe(GUARANTEE);
  });

  test("what is lent is not a resource, and takes no room", async () => {
    pool = await new Pool().start();
    await pool.create(ONE, "zuul");
    const listed = await pool.settle(pool.provider.list(new AbortController().signal));
    expect(listed.map(({ tag, resources }) => [tag?.nodeId, resources.millicores])).toEqual([
      [ONE, GUARANTEE],
    ]);
    // Guarantees fit ten times; what `free` says must not stand in the way of any of them.
    for (let id = 2; id <= CAPACITY / GUARANTEE; id++)
      await pool.create(String(id).padStart(10, "0"), "zuul");
    expect(Object.keys(pool.caps)).toHaveLength(CAPACITY / GUARANTEE);
    expect([...new Set(Object.values(pool.caps))]).toEqual([CAP]);
  });

  test("a machine reports what it guarantees to which nodes, and the loans between them", async () => {
    pool = await new Pool().start();
    await pool.create(ONE, "zuul");
    await pool.create(TWO, MIN_READY);
    const { slivers } = pool.provider.offers!;
    const [machine] = await pool.settle(slivers!.machines(new AbortController().signal));
    expect(machine).toMatchObject({
      name: "big-1",
      error: null,
      capacity: { millicores: CAPACITY, ram: 4096 },
      guaranteed: { instances: 2, millicores: 2 * GUARANTEE },
    });
    const byNode = new Map(machine!.slivers.map((one) => [one.node ?? one.use, one]));
    const [busy, idle, free] = [ONE, TWO, "free"].map((node) => byNode.get(node)!);
    expect(busy).toMatchObject({
      use: "busy",
      phase: "running",
      guarantees: { millicores: GUARANTEE },
      rspec: { cpuCap: CAP },
      effective: { cpuCap: pool.caps[ONE] },
      loans: [],
    });
    const loan = (amount: number) => [{ to: busy!.name, resource: "cpuCap", amount, refused: null }];
    expect(idle).toMatchObject({
      use: "idle",
      effective: { cpuCap: GUARANTEE },
      loans: loan(CAP - GUARANTEE),
    });
    expect(free).toMatchObject({ guarantees: {}, loans: loan(CAPACITY - 2 * CAP - FREE_KEEPS) });
  });

  test("a machine that is silent is shown with why, and in time", async () => {
    pool = await new Pool().start();
    pool.silent = true;
    const before = pool.clock.now();
    const machines = await pool.settle(pool.provider.offers!.slivers!.machines(new AbortController().signal));
    expect(machines).toEqual([
      {
        name: "big-1",
        error: expect.stringContaining("did not answer"),
        capacity: {},
        guaranteed: {},
        remarks: [],
        caches: [],
        spares: [],
        uses: {},
        slivers: [],
      },
    ]);
    expect(pool.clock.now() - before).toBeLessThan(5_000);
  });

  test("where it is switched off what was lent goes back", async () => {
    pool = await new Pool().start();
    await pool.create(ONE, "zuul");
    await pool.create(TWO, MIN_READY);
    expect(pool.caps[TWO]).toBe(GUARANTEE);
    await pool.provider.close();
    await pool.open("none");
    await pool.quiet();
    expect(pool.caps[TWO]).toBeGreaterThanOrEqual(CAP);
  });

  test("a cache that a sliver has keeps it from other requests when its label has no caches any more, too", async () => {
    pool = await new Pool().start();
    await pool.open("none", { caches: [{ name: "npm", size: 1, commit: "always" }] });
    await pool.create(ONE, "zuul", "100-1");
    await pool.provider.close();
    await pool.open("none");
    await pool.settle(pool.ready(ONE, "100-1"));
    await expect(pool.settle(pool.ready(ONE, "100-2"))).rejects.toThrow("has caches of request 100-1");
  });

  test("without it no sliver lends, whatever others do", async () => {
    pool = await new Pool().start("none");
    await pool.create(ONE, "zuul");
    await pool.create(TWO, MIN_READY);
    expect(pool.caps).toEqual({ [ONE]: CAP, [TWO]: CAP });
  });
});
