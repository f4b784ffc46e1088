import { DriverError, type Notices } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { withMethods } from "../rules/with-methods.ts";
import { fakeProvider, launcherConfig, World } from "../rules/world.ts";

const ATTRIBUTES = { rack: "r1", owner: "driver" };
const PROVIDER = fakeProvider("cloud", { "launch-retries": 2 }, { "node-attributes": { owner: "operator" } });

/** The fake driver with these notices, and whatever else of its offers. */
const listening = (notices: Notices) =>
  withMethods((inner) => ({
    // As a cloud that does not know its machines' host keys: they are scanned for.
    async *create(order, step) {
      const { hostKeys: _, ...machine } = yield* inner.create(order, step);
      return machine;
    },
    offers: { ...inner.offers, notices },
  }));

function book() {
  const told: unknown[][] = [];
  const notices: Notices = {
    attributes: async ({ pool, label, request }) => {
      told.push(["attributes", pool.name, label.name, request.id]);
      return ATTRIBUTES;
    },
    reused: async ({ nodeId }, request) => void told.push(["reused", nodeId, request.id]),
    scanFailed: async ({ nodeId }, { externalId }) => void told.push(["scanFailed", nodeId, externalId]),
    deleted: async ({ nodeId }) => void told.push(["deleted", nodeId]),
  };
  return { told, notices };
}

async function release(world: World, id: string, state: string): Promise<void> {
  const record = world.json(paths.node(id));
  await world.put(paths.node(id), { ...record, state, allocated_to: null });
}

const ALL = ["attributes", "reused", "deleted"];

describe("a driver that keeps books", () => {
  test("is asked for attributes before the record, told of reuse and of the end; the pool's attributes are above its own", async () => {
    const world = new World();
    const { told, notices } = book();
    const member = await world.start("a", launcherConfig([PROVIDER]), { wrap: listening(notices) });
    const first = await world.ask();
    const { nodes } = await world.fulfilled(first);
    const [node] = nodes as string[];
    expect(world.node(node!)?.attributes).toEqual({ rack: "r1", owner: "operator" });
    await world.settle(world.other.delete(paths.request(first)));
    await world.until("the node is free", () => world.node(node!)?.allocated_to === null);
    const second = await world.ask();
    expect((await world.fulfilled(second)).nodes).toEqual([node]);
    await release(world, node!, "used");
    await world.until("it is gone", () => world.node(node!) === undefined);
    await world.run(100);
    expect(told).toEqual([
      ["attributes", "main", "small", first],
      ["reused", node, second],
      ["deleted", node],
    ]);
    expect(member.counters.value("launcher.notices_failed")).toBe(0);
  });

  test("hears of a scan that failed, with the machine that is still there, and of no other failure", async () => {
    const world = new World();
    const { told, notices } = book();
    const there: number[] = [];
    const scanFailed: Notices["scanFailed"] = async (tag, step) => {
      there.push(world.cloud.inspect().filter(({ id }) => id === step.externalId).length);
      await notices.scanFailed?.(tag, step);
    };
    let scans = 0;
    const scan = {
      scan: async ({ host }: { readonly host: string }) => {
        if (++scans === 1) throw new DriverError("timeout", "no answer");
        return { address: host, family: 4 as const, hostKeys: ["ssh-ed25519 AAAA"] };
      },
    };
    // The second try fails before there is anything to scan; the third works.
    await world.start("a", launcherConfig([fakeProvider("cloud", { "launch-retries": 3 })]), {
      wrap: listening({ ...notices, scanFailed }),
      scan,
    });
    const id = await world.ask();
    await world.until("the first scan", () => scans === 1);
    world.cloud.faults.createFails = 1;
    const [node] = (await world.fulfilled(id)).nodes as [string];
    expect(world.node(node)?.host_keys).toEqual(["ssh-ed25519 AAAA"]);
    expect(world.cloud.faults.createFails).toBe(0);
    expect(told.filter(([notice]) => notice === "scanFailed")).toHaveLength(1);
    expect(there).toEqual([1]);
  });

  test.each([
    ["throws", () => Promise.reject(new Error("the books are lost")), ALL],
    ["never ends", () => new Promise<never>(() => {}), ALL],
    // What is nobody's answer is not missed either.
    ["is no promise", () => 7 as unknown as Promise<never>, ["attributes"]],
  ])("and %s stops nothing; it is counted", async (_how, fail, counted) => {
    const world = new World();
    const notices: Notices = { attributes: fail, reused: fail, scanFailed: fail, deleted: fail };
    const member = await world.start("a", launcherConfig([PROVIDER]), { wrap: listening(notices) });
    const first = await world.ask();
    const [node] = (await world.fulfilled(first)).nodes as string[];
    expect(world.node(node!)?.attributes).toEqual({ owner: "operator" });
    await world.settle(world.other.delete(paths.request(first)));
    await world.until("the node is free", () => world.node(node!)?.allocated_to === null);
    expect((await world.fulfilled(await world.ask())).nodes).toEqual([node]);
    await release(world, node!, "used");
    await world.until("it is gone", () => world.node(node!) === undefined);
    await world.run(20_000);
    const failed = ALL.filter((notice) =>
      member.counters.value("launcher.notices_failed", { provider: "cloud", notice }),
    );
    expect(failed).toEqual(counted);
    expect(member.counters.value("launcher.notices_failed")).toBe(counted.length);
    expect(member.launcher.inspect().tasks).toEqual([]);
  });

  test("and gives what a record cannot hold is not believed", async () => {
    const world = new World();
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    const answers = [cyclic, [1], "text", { at: 1n }];
    const notices: Notices = { attributes: async () => answers.shift() as Record<string, unknown> };
    const member = await world.start("a", launcherConfig([PROVIDER]), { wrap: listening(notices) });
    for (let asked = 1; asked <= 4; asked++) {
      const [node] = (await world.fulfilled(await world.ask())).nodes as string[];
      expect(world.node(node!)?.attributes).toEqual({ owner: "operator" });
      expect(member.counters.value("launcher.notices_failed")).toBe(asked);
    }
  });
});
