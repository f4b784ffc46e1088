import type { Driver, Provider } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { createState, reduce } from "@nodeyard/scheduler";
import { Fence, type Session, type Tree } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { fakeProvider, launcherConfig, staticProvider, World } from "./world.ts";

const seconds = (min: number) => ({ minMs: min * 1_000, maxMs: min * 1_000 });
const SLOW = { create: seconds(1), boot: seconds(2), delete: seconds(1), read: seconds(0) };

/** Notes each step of the cloud as it begins. */
function watched(world: World, effects: { at: number; what: string }[]): (driver: Driver) => Driver {
  const note = (what: string) => effects.push({ at: world.clock.monotonic(), what });
  async function* noted<S, T>(what: string, steps: AsyncGenerator<S, T, void>): AsyncGenerator<S, T, void> {
    for (;;) {
      note(what);
      const next = await steps.next();
      if (next.done) return next.value;
      yield next.value;
    }
  }
  return (driver) => ({
    ...driver,
    open: async (config, context) => {
      const provider = await driver.open(config, context);
      return new Proxy(provider, {
        get(target, name: keyof Provider) {
          const value = target[name] as (...args: unknown[]) => unknown;
          if (name === "create" || name === "remove")
            return (...args: unknown[]) => noted(name, value.apply(target, args) as AsyncGenerator);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    },
  });
}

describe("rule 1: a process trusts its locks only for 2/3 of the session timeout", () => {
  function fence() {
    const clock = new VirtualClock();
    const session = { id: 1n, epoch: 1, state: "connected", trustedUntil: 6_667 } as {
      -readonly [K in keyof Session]: Session[K];
    };
    const tree = { session: () => session } as unknown as Tree;
    const held = { parent: "/l", contender: "/l/c", epoch: 1 };
    return { clock, session, held, fence: new Fence(tree, clock, seededRandom(1)) };
  }

  test("and not a moment longer", async () => {
    const { clock, held, fence: it } = fence();
    await clock.advance(6_666);
    expect(it.holds(held)).toBe(true);
    await clock.advance(2);
    expect(it.holds(held)).toBe(false);
    expect(() => it.demand(held)).toThrow("lost the right to act");
  });

  test("a lock of another epoch is worth nothing", () => {
    const { session, held, fence: it } = fence();
    session.epoch = 2;
    expect(it.holds(held)).toBe(false);
  });

  test("a wall clock that moved more than the monotonic one counts as expiry, until the tree has answered again", async () => {
    const { clock, session, held, fence: it } = fence();
    expect(it.holds(held)).toBe(true);
    clock.jump(30_000);
    expect(it.holds(held)).toBe(false);
    await clock.advance(100);
    expect(it.holds(held)).toBe(false);
    session.trustedUntil += 1_000;
    expect(it.holds(held)).toBe(true);
    clock.jump(-30_000);
    expect(it.holds(held)).toBe(false);
  });

  test("small steps of the wall clock, as NTP makes them, are nothing", async () => {
    const { clock, held, fence: it } = fence();
    for (let step = 0; step < 5; step++) {
      clock.jump(1_500);
      expect(it.holds(held)).toBe(true);
    }
  });
});

describe("rule 1: while suspended or resyncing no new effect starts", () => {
  test("launches and deletes stand still in a partition, and go on in the same session after it", async () => {
    const world = new World({ latency: SLOW });
    const effects: { at: number; what: string }[] = [];
    const { tree } = await world.start("a", launcherConfig([fakeProvider()]), {
      wrap: watched(world, effects),
      sessionTimeoutMs: 60_000,
    });
    const used = await world.ask();
    const { nodes } = await world.fulfilled(used);
    const [gone] = nodes as string[];
    const id = await world.ask({ node_types: ["small", "large"] });
    await world.settle(world.other.delete(paths.request(used)));
    await world.put(paths.node(gone!), { ...world.node(gone!), state: "used" });
    await world.run(300);
    const before = effects.length;
    expect(before).toBeGreaterThan(2);
    tree.disconnect(true);
    await world.run(10_000);
    expect(effects.slice(before)).toEqual([]);
    tree.reconnect();
    await world.fulfilled(id);
    expect(effects.length).toBeGreaterThan(before);
    expect(world.cloud.inspect().length).toBe(world.nodes().length);
  });

  test("nothing is begun under a session that ended unnoticed", async () => {
    const world = new World({ latency: SLOW });
    const effects: { at: number; what: string }[] = [];
    const { tree } = await world.start("a", launcherConfig([fakeProvider()]), {
      wrap: watched(world, effects),
    });
    await world.ask({ node_types: ["small", "large"] });
    await world.run(300);
    const before = effects.length;
    tree.disconnect(true);
    await world.run(120_000);
    expect(effects.slice(before)).toEqual([]);
  });

  test("a request is neither accepted nor put back from a picture with a gap", async () => {
    const world = new World();
    const { tree, launcher } = await world.start("a", launcherConfig([fakeProvider()]));
    const lost = await world.ask({ state: "pending" });
    await world.run(100);
    tree.expire();
    world.fault = ({ kind, path }) =>
      kind === "children" && path.startsWith("/nodepool/nodes") ? "lose-request" : undefined;
    const waiting = await world.ask();
    await world.run(20_000);
    expect(launcher.view.complete).toBe(false);
    const touched = () =>
      world.cluster.log.filter(
        ({ client, ops }) => client === "a" && ops.some((op) => op.path.startsWith("/nodepool/requests")),
      );
    expect(touched()).toEqual([]);
    expect(launcher.verdict(lost)).toBeDefined();
    world.fault = () => undefined;
    await world.fulfilled(waiting);
    await world.fulfilled(lost, 5_000);
  });
});

describe("rule 1: static hosts", () => {
  const host = { name: "127.0.0.1", labels: ["small"], "host-key-checking": false };

  test("a slot whose user vanished in the midst of it is not offered again for a minute", async () => {
    const world = new World();
    await world.start("a", launcherConfig([staticProvider([host])]));
    const first = await world.ask();
    const { nodes } = await world.fulfilled(first);
    const [id] = nodes as string[];
    const lock = await world.contend(paths.nodeLock(id!));
    await world.put(paths.node(id!), { ...world.node(id!), state: "in-use" });
    await world.settle(world.other.delete(paths.request(first)));
    const second = await world.ask();
    await world.settle(world.other.delete(lock));
    await world.run(59_000);
    expect(world.request(second)?.state).toBe("requested");
    expect(world.nodes()).toHaveLength(1);
    await world.fulfilled(second, 10_000);
  });

  test("each slot has one record, through changes of leader, ended sessions and lost replies", async () => {
    for (let seed = 1; seed <= 12; seed++) {
      const world = new World();
      const random = seededRandom(seed);
      const hosts = Array.from({ length: 3 }, (_, at) => ({
        ...host,
        name: `127.0.0.${at + 1}`,
        "max-parallel-jobs": 2,
      }));
      const config = launcherConfig([staticProvider(hosts)]);
      world.fault = ({ kind }) => {
        const chance = random.float();
        if (kind === "write" && chance < 0.1) return chance < 0.05 ? "lose-reply" : "lose-request";
        return chance < 0.3 ? { delayMs: random.float() * 500 } : undefined;
      };
      const trees = ["a", "b"].map((name) => world.launch(name, config, { sessionTimeoutMs: 2_000 }).tree);
      for (let round = 0; round < 12; round++) {
        await world.run(random.float() * 1_500);
        const tree = trees[Math.floor(random.float() * 2)]!;
        if (random.float() < 0.5) tree.expire();
        else {
          tree.disconnect(true);
          world.clock.setTimer(random.float() * 5_000, () => tree.reconnect());
        }
        const taken = world.nodes().map((node) => `${node.hostname}#${node.slot}`);
        expect(new Set(taken).size, `seed ${seed}: ${taken}`).toBe(taken.length);
      }
      world.fault = () => undefined;
      await world.until("all slots are registered", () => world.nodes().length === 6, 200_000);
    }
  });
});

test("rule 1: a sweep that comes while the picture has a gap puts nothing back, and is made up for", () => {
  const state = createState();
  const record = { state: "pending", nodeTypes: ["small"], declinedBy: [], nodes: [] } as never;
  const after = { id: "100-1", record, version: 0 };
  reduce(state, [{ type: "request", id: "100-1", after }], 1);
  expect(reduce(state, [{ type: "sweep" }], 2).actions).toEqual([]);
  expect(reduce(state, [{ type: "complete", complete: true }], 3).actions).toEqual([
    { type: "reset", request: "100-1" },
  ]);
});
