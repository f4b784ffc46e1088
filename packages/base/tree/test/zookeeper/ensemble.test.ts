import { seededRandom, systemClock } from "@nodeyard/runtime";
import { describe } from "vitest";
import { requireZooKeeper, startEnsemble } from "../../../../../testing/zookeeper/index.ts";
import type { Tree } from "../../src/contract.ts";
import { connectZooKeeperTree } from "../../src/zookeeper/index.ts";
import { type Target, treeConformance } from "../suite/index.ts";

/** Longer than an election takes, so that every session outlives its leader. */
const SESSION_MS = 60_000;

/**
 * Three servers; each session is with any of them, so what one has written another may see later. A connection breaks by
 * the death of the leader: followers hang up on their clients too until a new one is elected.
 */
async function ensembleTarget(): Promise<Target> {
  const ensemble = await startEnsemble(3);
  const open = new Set<Tree>();
  let whole: Promise<void> = Promise.resolve();
  return {
    clock: systemClock,
    connect: async () => {
      const tree = await connectZooKeeperTree({
        servers: ensemble.connectionString,
        clock: systemClock,
        random: seededRandom(open.size),
        sessionTimeoutMs: SESSION_MS,
        resyncSpreadMs: 0,
      });
      open.add(tree);
      tree.onSession(({ state }) => state === "closed" && open.delete(tree));
      return tree;
    },
    disconnect: async () => {
      await whole;
      const leader = await ensemble.leader();
      const noticed = [...open].map((tree) => {
        const { promise, resolve } = Promise.withResolvers<void>();
        const stop = tree.onSession(({ state }) => state === "suspended" && resolve());
        return promise.finally(stop);
      });
      await leader.kill();
      await Promise.all(noticed);
      // The two that are left elect; the third joins them again, so that the next leader may be killed too.
      whole = leader.restart().then(() => leader.ready());
      whole.catch(() => undefined);
    },
    stop: async () => {
      await whole.catch(() => undefined);
      await ensemble.stop();
    },
  };
}

describe.skipIf(requireZooKeeper())("the contract", () => {
  treeConformance("on an ensemble whose leader is killed meanwhile", ensembleTarget, ["disconnect"]);
});
