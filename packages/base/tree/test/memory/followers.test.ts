import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { type CallInfo, createMemoryTree, type Fault } from "../../src/memory/index.ts";
import { Follower } from "../suite/index.ts";

const LAG_MS = 1_000;
const data = (text: string) => new TextEncoder().encode(text);
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** A leader and one follower: each reconnect is to the other one. The first connection is to the follower. */
async function setup(faults?: (call: CallInfo) => Fault) {
  const clock = new VirtualClock();
  const cluster = createMemoryTree({
    clock,
    random: seededRandom(5),
    followers: { count: 1, lagMs: () => LAG_MS },
    ...(faults && { faults }),
  });
  const client = (name: string) => cluster.connect({ name, sessionTimeoutMs: 9_000 });
  const tree = client("tree");
  const writer = client("writer");
  writer.disconnect();
  await clock.advance(200);
  await writer.create("/a", data("1"));
  return { clock, cluster, tree, writer };
}

describe("a client of a follower", () => {
  test("shows another client's write to reads and feeds when the follower has it", async () => {
    const { clock, tree } = await setup();
    const seen = new Follower();
    tree.feed("/a", seen.options());
    await clock.advance(LAG_MS - 50);
    expect(await tree.stat("/a")).toBeUndefined();
    expect(seen.said()).toEqual(["synced"]);
    await clock.advance(100);
    expect(seen.said()).toEqual(["synced", "put /a=1"]);
  });

  test("a comparison shows a feed every write that was acknowledged to others before it", async () => {
    const { clock, tree } = await setup();
    const seen = new Follower();
    const feed = tree.feed("/a", seen.options());
    await clock.advance(10);
    expect(seen.said()).toEqual(["synced"]);
    const compared = feed.resync();
    await clock.advance(10);
    await compared;
    expect(seen.said()).toContain("put /a=1");
  });

  test("sync shows every write that was acknowledged to others; so does a write of its own, and one that is refused", async () => {
    const { tree, writer } = await setup();
    expect(await tree.stat("/a")).toBeUndefined();
    await tree.sync("/");
    expect(text((await tree.get("/a")).data)).toBe("1");
    await writer.set("/a", data("2"));
    await tree.create("/b");
    expect(text((await tree.get("/a")).data)).toBe("2");
    await writer.set("/a", data("3"));
    await expect(tree.create("/b")).rejects.toMatchObject({ code: "tree.node_exists" });
    expect(text((await tree.get("/a")).data)).toBe("3");
  });

  test("may not see its own write whose reply was lost, on the server that it comes back to, until sync", async () => {
    let losing = false;
    const { clock, tree, writer } = await setup((call) =>
      losing && call.kind === "write" ? "lose-reply" : undefined,
    );
    // The writer is connected to the leader, and comes back to the follower, which has what it was answered.
    await clock.advance(LAG_MS);
    losing = true;
    const write = writer.set("/a", data("2")).catch((error) => error.outcome);
    await clock.advance(0);
    expect(await write).toBe("unknown");
    losing = false;
    const read = writer.get("/a");
    await clock.advance(200);
    expect(text((await read).data)).toBe("1");
    await writer.sync("/a");
    expect(text((await writer.get("/a")).data)).toBe("2");
    expect(tree.session().state).toBe("connected");
  });

  test("comes back to no server that is behind what it was answered", async () => {
    const { clock, writer } = await setup();
    await writer.set("/a", data("2"));
    for (let times = 0; times < 3; times++) {
      writer.disconnect();
      const read = writer.get("/a");
      await clock.advance(200);
      expect(text((await read).data)).toBe("2");
    }
  });
});
