import { Election, Registration } from "@nodeyard/coordination";
import { newComponent } from "@nodeyard/model";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { Live, memoryLog } from "@nodeyard/telemetry";
import { type CallInfo, createMemoryTree, Fence, HeldRecord, type RecordKind } from "@nodeyard/tree";
import { expect, test } from "vitest";

/** Longer than an election waits before it tries again; ZooKeeper lets a follower be behind by its syncLimit, 10 s by default. */
const LAG_MS = 8_000;

/** A client of a leader, which comes back to a follower that is behind when its connection breaks. */
async function site() {
  const clock = new VirtualClock();
  const random = seededRandom(3);
  /** The next write for which it says so loses its reply. */
  const losing: { when: ((call: CallInfo) => boolean) | undefined } = { when: undefined };
  const cluster = createMemoryTree({
    clock,
    random,
    followers: { count: 1, lagMs: () => LAG_MS },
    faults: (call) => {
      if (losing.when?.(call) !== true) return undefined;
      losing.when = undefined;
      return "lose-reply";
    },
  });
  const tree = cluster.connect({ sessionTimeoutMs: 30_000 });
  tree.disconnect();
  await clock.advance(200);
  for (const path of ["/object", "/nodepool", "/nodepool/components", "/nodepool/components/launcher"])
    await tree.create(path);
  // The follower has what the client was answered, so the client may come back to it.
  await clock.advance(LAG_MS);
  const settle = async (work: Promise<unknown>) => {
    work.catch(() => {});
    await clock.advance(60_000);
    await work.catch(() => {});
  };
  const contends = ({ ops }: CallInfo) => ops.some((op) => op.op === "create" && op.ephemeral === true);
  const handles = { tree, clock, random, log: memoryLog(), live: new Live(clock) };
  const children = (path: string) => cluster.znodes.children(path) ?? [];
  return { clock, tree, losing, settle, contends, handles, children, fence: new Fence(tree, clock, random) };
}

test.each(["lockFresh", "lockExisting"] as const)(
  "%s: a contender whose making was not answered does not stay in the line, though the next server does not show it",
  async (how) => {
    const { clock, tree, losing, settle, contends, children, fence } = await site();
    if (how === "lockExisting") await tree.create("/object/lock");
    await clock.advance(LAG_MS);
    losing.when = contends;
    await settle(
      how === "lockFresh" ? fence.lockFresh("/object/lock", []) : fence.lockExisting("/object/lock"),
    );
    expect(losing.when).toBeUndefined();
    expect(children("/object/lock")).toEqual([]);
  },
);

test("a closed election leaves no contender whose making was not answered, though the next server does not show it", async () => {
  const { clock, tree, losing, settle, contends, handles, children } = await site();
  for (const path of ["/nodeyard", "/nodeyard/elections", "/nodeyard/elections/x"]) await tree.create(path);
  await clock.advance(LAG_MS);
  losing.when = contends;
  const election = new Election(handles, "x", () => {});
  election.start();
  await clock.advance(0);
  expect(losing.when).toBeUndefined();
  await settle(election.close());
  expect(children("/nodeyard/elections/x")).toEqual([]);
});

test("a component is registered once, even when its creation was not answered and the next server does not show it yet", async () => {
  const { losing, settle, contends, handles, children } = await site();
  losing.when = contends;
  const record = newComponent({ kind: "launcher", hostname: "host", version: "1", state: "running" });
  await settle(new Registration(handles, "host").register("launcher", record));
  expect(children("/nodepool/components/launcher")).toHaveLength(1);
});

const TEXT: RecordKind<string, string> = {
  decode: (_id, data) => Buffer.from(data).toString(),
  encode: (record) => Buffer.from(record),
  change: (_record, patch) => patch,
  sameGround: (ours, theirs) => ours === theirs,
};

/** A write that happened and is made again finds its lock or its record gone, and the work is given up that went well. */
test.each([false, true])(
  "a held record that was written is known to be, though the next server does not show it (unlocking: %s)",
  async (unlocks) => {
    const { clock, tree, losing, settle, children, fence } = await site();
    await tree.create("/object/lock");
    const held = await fence.lockExisting("/object/lock");
    if (typeof held === "string") throw new Error(`the lock is ${held}`);
    await clock.advance(LAG_MS);
    losing.when = ({ ops }) => ops.some(({ op }) => op === "set");
    const at = { id: "object", path: "/object", held, record: "", version: 0 };
    const record = new HeldRecord(tree, clock, TEXT, at);
    const written = unlocks
      ? record.write("done", (set) => [set, { op: "delete", path: held.contender }])
      : record.write("done");
    await settle(written);
    expect(losing.when).toBeUndefined();
    await expect(written).resolves.toBeUndefined();
    expect((await tree.get("/object")).stat.version).toBe(1);
    expect(record).toMatchObject({ record: "done", version: 1 });
    expect(children("/object/lock")).toHaveLength(unlocks ? 0 : 1);
  },
);
