import { DEAD_LETTERS, deadLetterPath, decodeDeadLetter, paths } from "@nodeyard/model";
import { retryDeletion } from "@nodeyard/operations";
import { seededRandom } from "@nodeyard/runtime";
import { Counters, memoryJournal, memoryLog } from "@nodeyard/telemetry";
import { describe, expect, test } from "vitest";
import { deletionPause, isDeadLetter } from "../src/nodes/deletions.ts";
import { assemble } from "../src/parts.ts";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const HOUR = 3_600_000;
const letters = (world: World) => world.children(DEAD_LETTERS);

/** A launcher with one used node that its cloud does not delete. */
async function stuck(world: World): Promise<string> {
  const id = await world.ask();
  const { nodes } = await world.fulfilled(id);
  const [node] = nodes as [string];
  world.cloud.faults.deleteFails = Number.POSITIVE_INFINITY;
  await world.settle(world.other.delete(paths.request(id)));
  await world.put(paths.node(node), { ...world.node(node), state: "used" });
  return node;
}

describe("a node that cannot be deleted", () => {
  test("is tried ever more rarely, marked for people, and still tried", async () => {
    const world = new World();
    const { counters, journal, log } = await world.start("a", launcherConfig([fakeProvider()]));
    const node = await stuck(world);
    const marked = () => counters.value("launcher.dead_letters", { provider: "cloud" });
    await world.until("it is marked", () => marked() === 1, 2 * HOUR);
    expect(letters(world)).toHaveLength(1);
    const failed = () => counters.value("launcher.deletes", { result: "failed" });
    expect(failed()).toBeGreaterThanOrEqual(3);
    expect(failed()).toBeLessThanOrEqual(10);
    const data = world.cluster.znodes.data(deadLetterPath(node))!;
    expect(decodeDeadLetter(node, data)).toMatchObject({ provider: "cloud", attempts: failed() });
    expect(decodeDeadLetter(node, data).error).toContain("delete fails");
    expect(journal.events.filter(({ event }) => event === "node.dead-letter")).toHaveLength(1);
    expect(log.lines.filter(({ level }) => level === "error")).toHaveLength(1);
    const before = failed();
    await world.run(4 * HOUR);
    expect(failed() - before).toBeGreaterThanOrEqual(4);
    expect(failed() - before).toBeLessThanOrEqual(12);
    expect(world.node(node)?.state).toBe("deleting");
    world.cloud.faults.deleteFails = 0;
    await world.until("it is gone", () => world.node(node) === undefined, HOUR);
    await world.run(100);
    expect(letters(world), "its mark goes with it").toEqual([]);
    expect(world.cloud.inspect()).toEqual([]);
  });

  test("is tried at once when a person takes the mark away", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider()]));
    const node = await stuck(world);
    await world.until("it is marked", () => letters(world).length === 1, 2 * HOUR);
    await world.run(60_000);
    world.cloud.faults.deleteFails = 0;
    const handles = { tree: world.other, clock: world.clock, random: seededRandom(1) };
    expect(await world.settle(retryDeletion(handles, node))).toBe(true);
    await world.until("it is gone", () => world.nodes().length === 0, 5_000);
    expect(await world.settle(retryDeletion(handles, node))).toBe(false);
  });

  test("keeps its mark over a restart, and is not tried more often for that; the mark of a node that is gone goes", async () => {
    const world = new World();
    const first = await world.start("a", launcherConfig([fakeProvider()]));
    const node = await stuck(world);
    await world.until("it is marked", () => letters(world).length === 1, 2 * HOUR);
    await world.put(deadLetterPath("0000099999"), { v: 1, node: "0000099999" });
    await world.settle(first.launcher.close(1_000));
    const { counters } = await world.start("b", launcherConfig([fakeProvider()]));
    await world.until("the other mark is gone", () => letters(world).length === 1, 300_000);
    expect(letters(world)).toEqual([node]);
    const before = counters.value("launcher.deletes", { result: "failed" });
    await world.run(HOUR / 4);
    expect(counters.value("launcher.deletes", { result: "failed" }) - before).toBeLessThanOrEqual(1);
  });

  test("the rule: ten tries, or three within an hour or more", () => {
    expect(isDeadLetter({ failed: 10, since: 0 }, 1)).toBe(true);
    expect(isDeadLetter({ failed: 9, since: 0 }, HOUR - 1)).toBe(false);
    expect(isDeadLetter({ failed: 3, since: 0 }, HOUR)).toBe(true);
    expect(isDeadLetter({ failed: 2, since: 0 }, 10 * HOUR)).toBe(false);
    const random = seededRandom(1);
    for (let failed = 1; failed < 40; failed++) {
      expect(deletionPause(random, { failed, since: 0 }, false)).toBeLessThanOrEqual(420_000);
      expect(deletionPause(random, { failed, since: 0 }, true)).toBeGreaterThan(1_000_000);
    }
  });
});

describe("a deletion that was decided of a node whose record was written since", () => {
  /** Decides to delete a node that is `decided`, and is written as `found` before its turn comes. Returns its state in the end. */
  async function late(
    decided: string,
    found: string | undefined,
    seen: "by nobody" | "by the view" = "by nobody",
    more: object = {},
  ): Promise<unknown> {
    const world = new World();
    const config = launcherConfig([]);
    const parts = assemble(
      {
        tree: world.cluster.connect({ name: "late", sessionTimeoutMs: 10_000, latencyMs: [1, 1] }),
        clock: world.clock,
        random: seededRandom(5),
        scan: { scan: async () => ({ address: "", family: 4, hostKeys: [] }) },
        log: memoryLog(),
        journal: memoryJournal(10),
        counters: new Counters(),
        identity: { hostname: "late", fqdn: "late.example", version: "0" },
        driverOf: () => Promise.reject(new Error("none is configured")),
        config,
      },
      "installation",
      () => config,
    );
    const record = { provider: null, allocated_to: null, state_time: 1 };
    const node = await world.makeNode({ ...record, state: decided });
    await world.folder(paths.nodeLock(node));
    await world.settle(parts.view.start());
    // So many others go first that it has to wait.
    for (let other = 0; other < 300; other++)
      parts.tasks.perform({ type: "delete", node: String(9_000_000_000 + other), version: 0, why: "" });
    const written = JSON.stringify({ ...record, state: found, ...more });
    if (found !== undefined) void world.other.set(paths.node(node), Buffer.from(written));
    const viewed = () => parts.view.nodes.byId.get(node)!;
    if (seen === "by the view") await world.until("the view knows", () => viewed().version === 1);
    else expect(viewed().record.state).toBe(decided);
    parts.tasks.perform({ type: "delete", node, version: 0, why: "" });
    await world.run(500);
    expect(world.children(paths.nodeLock(node)), "it lets go of the lock").toEqual([]);
    await world.settle(parts.view.close());
    return world.node(node)?.state;
  }

  test("leaves it alone when another client has locked it meanwhile", async () => {
    for (const state of ["in-use", "testing", "ready", "hold"])
      expect(await late("building", state)).toBe(state);
  });

  // The user held it and let go of it in one breath: the lock's end is told before the record has been read.
  test("leaves it alone also when the view has learnt of it before the scheduler did", async () => {
    expect(await late("in-use", "hold", "by the view")).toBe("hold");
  });

  test("leaves a ready node alone that was given to a request meanwhile", async () => {
    expect(await late("ready", "ready", "by the view", { allocated_to: "100-0000000001" })).toBe("ready");
  });

  test("leaves a held node alone that was held once more meanwhile, whether the view knows or not", async () => {
    const again = { state_time: 2, hold_expiration: 3_600 };
    expect(await late("hold", "hold", "by nobody", again)).toBe("hold");
    expect(await late("hold", "hold", "by the view", again)).toBe("hold");
  });

  test("goes on when it is unchanged, or has no user", async () => {
    for (const state of ["in-use", "testing", "ready", "hold"])
      expect(await late(state, undefined), state).toBeUndefined();
    expect(await late("building", "failed")).toBeUndefined();
  });
});

describe("a try whose machine cannot be removed", () => {
  test("keeps its record and its id until it can; the request goes on with another record", async () => {
    const world = new World();
    await world.start("a", launcherConfig([fakeProvider("cloud", { "launch-retries": 3 })]));
    world.cloud.faults.endsInError = 1;
    world.cloud.faults.deleteFails = 4;
    const { nodes } = await world.fulfilled(await world.ask(), 60_000);
    expect(nodes).not.toContain("0000000000");
    await world.until("the first one is gone as well", () => world.cloud.inspect().length === 1);
    // The machine goes first, and its record with the next commit.
    await world.until("its record goes after it", () => world.nodes().length === 1, 1_000);
  });
});
