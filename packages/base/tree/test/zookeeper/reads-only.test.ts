import { seededRandom, systemClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { readZooKeeperLog } from "../../../../../testing/chaos/raw-log/zookeeper.ts";
import { requireZooKeeper, startZooKeeper } from "../../../../../testing/zookeeper/index.ts";
import { type Change, connectZooKeeperTree } from "../../src/index.ts";

test.skipIf(requireZooKeeper())(
  "a tree that only reads refuses writes, follows others, and leaves nothing in the server's log",
  async () => {
    const server = await startZooKeeper();
    try {
      const at = { clock: systemClock, random: seededRandom(1), servers: `127.0.0.1:${server.port}` };
      await using writer = await connectZooKeeperTree(at);
      await using tree = await connectZooKeeperTree({ ...at, readsOnly: true });
      await writer.create("/a");
      const changes: Change[] = [];
      const seen = Promise.withResolvers<void>();
      const onChange = (change: Change) => {
        changes.push(change);
        if (change.type === "put" && change.path === "/a/b") seen.resolve();
      };
      const feed = tree.feed("/a", { interest: () => "data", onChange });
      await feed.synced;
      await writer.create("/a/b");
      await seen.promise;
      await feed.resync();
      await tree.sync("/a");
      for (const write of [
        tree.create("/c"),
        tree.set("/a", new Uint8Array(1)),
        tree.delete("/a/b"),
        tree.commit([{ op: "check", path: "/a" }]),
      ])
        await expect(write).rejects.toMatchObject({ code: "tree.reads_only", outcome: "none" });
      expect(await tree.children("/a")).toEqual(["b"]);
      const sessions = readZooKeeperLog(server.dataDir).map(({ session }) => session);
      expect(new Set(sessions)).toEqual(new Set([writer.session().id]));
      // The same calls of another one are there.
      await writer.sync("/a");
      expect(readZooKeeperLog(server.dataDir).length).toBe(sessions.length + 1);
    } finally {
      await server.stop();
    }
  },
);
