import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import {
  type AppliedWrite,
  attachEmbeddedTree,
  connectZooKeeperTree,
  createMemoryTree,
  openEmbeddedTree,
  socketPath,
  startTreeServer,
  type Tree,
} from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../testing/zookeeper/index.ts";
import { simulate } from "../run.ts";
import { dump, play } from "./play.ts";

const SEEDS = [1, 2, 3];
const ROOTS = ["/nodepool", "/nodeyard"];
const timeout = 300_000;

interface Store {
  readonly connect: (client: string) => Promise<Tree>;
  readonly stop: () => Promise<void>;
}

/** The same store as the simulation's, without faults: the other stores must give the same answers and end state. */
async function memory(): Promise<Store> {
  const cluster = createMemoryTree({ clock: systemClock, random: systemRandom });
  return { connect: async (name) => cluster.connect({ name }), stop: async () => {} };
}

/** Zuul's session stays open to the end, so it may be the owner's own; all others use the socket. */
async function embedded(): Promise<Store> {
  const folder = await mkdtemp(join(tmpdir(), "nodeyard-replay-"));
  const owner = await openEmbeddedTree({ folder, clock: systemClock, random: systemRandom });
  const server = await startTreeServer({ core: owner.core, clock: systemClock, socket: socketPath(folder) });
  let taken = false;
  return {
    connect: async (client) => {
      if (client !== "zuul" || taken) return attached(folder);
      taken = true;
      return new Proxy(owner, {
        get: (tree, name) => {
          if (name === "close") return async () => {};
          const value: unknown = Reflect.get(tree, name, tree);
          return typeof value === "function" ? value.bind(tree) : value;
        },
      });
    },
    stop: async () => {
      await server.close();
      await owner.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function attached(folder: string): Promise<Tree> {
  return attachEmbeddedTree({ folder, clock: systemClock, random: systemRandom, sessionTimeoutMs: 60_000 });
}

async function zooKeeper(): Promise<Store> {
  const server = await startZooKeeper();
  return {
    connect: () =>
      connectZooKeeperTree({
        servers: `${server.host}:${server.port}`,
        clock: systemClock,
        random: systemRandom,
        sessionTimeoutMs: 30_000,
      }),
    stop: () => server.stop(),
  };
}

/** The store's answers, its content, and the content of a feed that saw all of it. */
async function replayed(history: readonly AppliedWrite[], start: () => Promise<Store>) {
  const store = await start();
  try {
    const observer = await store.connect("observer");
    const picture = new Map<string, string>();
    const feeds = ROOTS.map((root) =>
      observer.feed(root, {
        interest: () => "data",
        onChange: (change) => {
          if (change.type === "put")
            picture.set(
              change.path,
              `${change.path} ${change.stat!.version} ${Buffer.from(change.data!).toString("hex")}`,
            );
          if (change.type === "remove") picture.delete(change.path);
        },
      }),
    );
    await Promise.all(feeds.map((feed) => feed.synced));
    const answers = await play(history, store.connect);
    const left = (await Promise.all(ROOTS.map((root) => dump(observer, root)))).flat().sort();
    await expect.poll(() => [...picture.values()].sort()).toEqual(left);
    await observer.close();
    return { answers, left };
  } finally {
    await store.stop();
  }
}

/** One run of each seed for all stores. */
const runs = new Map<
  number,
  Promise<{ history: AppliedWrite[]; expected: Awaited<ReturnType<typeof replayed>> }>
>();

function run(seed: number) {
  const known = runs.get(seed);
  if (known !== undefined) return known;
  const made = (async () => {
    const history: AppliedWrite[] = [];
    await simulate({ seed, onWrite: (write) => void history.push(write) });
    return { history, expected: await replayed(history, memory) };
  })();
  runs.set(seed, made);
  return made;
}

describe.each(SEEDS)("the history of seed %i has the same answers, end and feed", (seed) => {
  test("in the embedded tree", { timeout }, async () => {
    const { history, expected } = await run(seed);
    expect(expected.answers.filter((line) => line.includes("refused")).length).toBeGreaterThan(100);
    expect(await replayed(history, embedded)).toEqual(expected);
  });

  test.skipIf(requireZooKeeper())("in a real ZooKeeper", { timeout }, async () => {
    const { history, expected } = await run(seed);
    expect(await replayed(history, zooKeeper)).toEqual(expected);
  });
});
