import { Election } from "@nodeyard/coordination";
import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { Live, memoryLog } from "@nodeyard/telemetry";
import { type Change, createMemoryTree, FenceLost, type Session, type Tree } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { launcherConfig, staticProvider, World } from "./world.ts";

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** A tree that makes contenders at once and tells of the line only when it is told to. */
async function stand() {
  const clock = new VirtualClock();
  const session: Mutable<Session> = { id: 1n, epoch: 1, state: "connected", trustedUntil: 6_667 };
  let tell: (change: Change) => void = () => {};
  let onSession: (session: Session) => void = () => {};
  let made = "";
  /** The contender of ours that the feed reported last. */
  let told = "";
  let count = 5;
  const tree = {
    session: () => session,
    onSession: (listener: typeof onSession) => {
      onSession = listener;
      return () => {};
    },
    feed: (_root: string, options: { onChange: typeof tell }) => {
      tell = options.onChange;
      const resync = async () => {
        if (told !== "") tell({ type: "remove", path: told });
        told = made;
        tell({ type: "put", path: made } as Change);
      };
      return { synced: Promise.resolve(), close: async () => {}, resync };
    },
    children: async () => [],
    create: async (path: string, _data: unknown, options?: { sequential?: boolean }) => {
      if (options?.sequential !== true) return { path, stat: {} };
      made = `${path}${`${count++}`.padStart(10, "0")}`;
      return { path: made, stat: { ephemeralOwner: session.id } };
    },
  } as unknown as Tree;
  const handles = { tree, clock, random: seededRandom(1), log: memoryLog(), live: new Live(clock) };
  const election = new Election(handles, "it", () => {});
  election.start();
  await clock.advance(1);
  const rival = "/nodeyard/elections/it/ffffffffffffffffffffffffffffffff__lock__0000000001";
  return {
    clock,
    session,
    election,
    made: () => made,
    tell: (change: object) => tell(change as Change),
    rival,
    renew: async () => {
      Object.assign(session, { id: session.id + 1n, epoch: session.epoch + 1 });
      onSession(session);
      await clock.advance(1);
    },
  };
}

describe("rule 1: the leader", () => {
  test("there is none before the whole line was read in this session: others may stand before us", async () => {
    const { election, tell, rival, renew } = await stand();
    expect(election.leading).toBe(false);
    expect(() => election.check()).toThrow(FenceLost);
    tell({ type: "put", path: rival });
    tell({ type: "synced" });
    expect(election.leading).toBe(false);
    tell({ type: "remove", path: rival });
    expect(election.leading).toBe(true);
    expect(election.check()).toMatchObject({ op: "check" });
    await renew();
    expect(election.leading).toBe(false);
  });

  test("not with a new contender in a line of the session before", async () => {
    const { election, tell, made, renew } = await stand();
    tell({ type: "synced" });
    expect(election.leading).toBe(true);
    const old = made();
    await renew();
    tell({ type: "remove", path: old });
    expect(made()).not.toBe(old);
    expect(election.leading).toBe(false);
    tell({ type: "synced" });
    expect(election.leading).toBe(true);
  });

  test("with a new contender, also when the deletion of the former one was not reported", async () => {
    const { election, tell, renew } = await stand();
    // Its session ended before the line was seen: what never came in does not go out of it either.
    await renew();
    tell({ type: "synced" });
    expect(election.leading).toBe(true);
  });

  test("not a moment longer than the session is trusted", async () => {
    const { election, tell, clock } = await stand();
    tell({ type: "synced" });
    await clock.advance(6_660);
    expect(election.leading).toBe(true);
    await clock.advance(10);
    expect(election.leading).toBe(false);
    expect(() => election.check()).toThrow(FenceLost);
  });

  test("not with a contender that another client deleted; it stands again behind the others", async () => {
    const { election, tell, made, rival, clock } = await stand();
    tell({ type: "synced" });
    const old = made();
    tell({ type: "put", path: rival });
    tell({ type: "remove", path: old });
    await clock.advance(1);
    expect(made()).not.toBe(old);
    expect(election.leading).toBe(false);
    tell({ type: "remove", path: rival });
    expect(election.leading).toBe(true);
  });
});

test("rule 1: a contender does not lead beside one before it whose event it missed", async () => {
  const clock = new VirtualClock();
  const random = seededRandom(5);
  let loses = false;
  const cluster = createMemoryTree({
    clock,
    random,
    // The first to stand is the second in line.
    faults: ({ client, ops }) =>
      client === "second" && ops.some(({ path }) => path.includes("__lock__"))
        ? { delayMs: 3_000 }
        : undefined,
    losesEvent: (client) => loses && client === "second",
  });
  const standing = (name: string) => {
    const tree = cluster.connect({ name });
    const handles = { tree, clock, random, log: memoryLog(), live: new Live(clock) };
    const election = new Election(handles, "it", () => {});
    election.start();
    return election;
  };
  const second = standing("second");
  await clock.advance(1_000);
  loses = true;
  const first = standing("first");
  await clock.advance(20_000);
  expect(cluster.znodes.children("/nodeyard/elections/it")).toHaveLength(2);
  expect([first.leading, second.leading]).toEqual([true, false]);
});

test("rule 1: what a leader of a lost session had still to write registers no slot a second time", async () => {
  const world = new World();
  const config = launcherConfig([staticProvider([{ name: "127.0.0.1", labels: ["small"] }])]);
  const keys = { address: "127.0.0.1", family: 4 as const, hostKeys: ["ssh-ed25519 AAAA"] };
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  let looks = 0;
  const slow = {
    scan: async () => {
      looks++;
      await gate;
      return keys;
    },
  };
  const { tree } = await world.start("a", config, { scan: slow });
  await world.until("the leader looks at the host", () => looks > 0);
  await world.start("b", config, { scan: { scan: async () => keys } });
  tree.disconnect(true);
  // Trusted still, it goes on: the record waits for a connection that comes with another session.
  open();
  await world.run(100);
  await world.until("the other one registered it", () => world.nodes().length === 1);
  tree.reconnect();
  await world.run(30_000);
  expect(world.nodes()).toHaveLength(1);
});
