import { connect } from "@nodeyard/zookeeper";
import { describe, expect, it } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../testing/zookeeper/index.ts";
import { COMMITS, runFloor, SUB_OPERATIONS } from "../floor.ts";

describe.skipIf(requireZooKeeper())("the floor", () => {
  it("sends the stated number of operations, and leaves nothing behind", async () => {
    const server = await startZooKeeper();
    try {
      const sums = { commits: 0, subOperations: 0 };
      const packetSent = (opCode: number, _bytes: number, subOperations: number) => {
        if (opCode !== 14) return;
        sums.commits++;
        sums.subOperations += subOperations;
      };
      await using client = await connect(`${server.host}:${server.port}`, { hooks: { packetSent } });
      const figure = await runFloor(client, 40);
      expect(figure.requests).toBe(40);
      expect(figure.perSecond).toBeGreaterThan(0);
      expect(sums).toEqual({ commits: 40 * COMMITS, subOperations: 40 * SUB_OPERATIONS });
      expect((await client.children("/")).children).toEqual(["zookeeper"]);
    } finally {
      await server.stop();
    }
  });
});
