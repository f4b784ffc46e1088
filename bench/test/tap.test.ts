import { connect } from "@nodeyard/zookeeper";
import { describe, expect, it } from "vitest";
import { requireZooKeeper, startZooKeeper } from "../../testing/zookeeper/index.ts";
import { Requester } from "../lib/requester.ts";
import { startTap } from "../lib/tap.ts";

describe.skipIf(requireZooKeeper())("on a real server", () => {
  it("the tap counts packets, sub-operations and the longest chain of round trips", async () => {
    const server = await startZooKeeper();
    try {
      await using tap = await startTap(`${server.host}:${server.port}`);
      await using client = await connect(tap.address);
      await client.ensurePath("/nodepool/requests/100-1");
      tap.reset();
      await client.exists("/");
      // Two at once are one round trip.
      await Promise.all([client.exists("/a"), client.exists("/b")]);
      await client.multi([
        { op: "check", path: "/nodepool" },
        { op: "set", path: "/nodepool/requests/100-1", data: Buffer.from("{}") },
      ]);
      await client.exists("/after");
      expect(tap.counts()).toEqual({
        packets: 5,
        subOperations: 6,
        byOperation: { exists: 4, multi: 1 },
        roundTrips: 3,
      });
    } finally {
      await server.stop();
    }
  });

  it("a requester sees its requests fulfilled at the tree's own times", async () => {
    const server = await startZooKeeper();
    try {
      await using client = await connect(`${server.host}:${server.port}`);
      const requester = await Requester.open(client);
      const ids = await requester.submit("small", 3);
      expect(ids.every((id) => /^100-\d{10}$/.test(id))).toBe(true);
      for (const id of ids)
        for (const state of ["pending", "fulfilled"]) {
          const path = `/nodepool/requests/${id}`;
          const record = JSON.parse((await client.get(path)).data.toString());
          await client.set(path, Buffer.from(JSON.stringify({ ...record, state, nodes: ["1"] })));
        }
      const results = await requester.fulfilled(ids, 10_000);
      expect(results.map(({ id }) => id).sort()).toEqual(ids);
      for (const one of results) {
        const { stat } = await client.get(`/nodepool/requests/${one.id}`);
        expect(one).toMatchObject({ createdAt: stat.ctime, fulfilledAt: stat.mtime, nodes: ["1"] });
      }
    } finally {
      await server.stop();
    }
  });

  it("a requester rejects when a request fails or nothing happens", async () => {
    const server = await startZooKeeper();
    try {
      await using client = await connect(`${server.host}:${server.port}`);
      const requester = await Requester.open(client);
      const ids = await requester.submit("small", 1);
      await expect(requester.fulfilled(ids, 50)).rejects.toThrow("1 of 1 requests open after 50 ms");
      await client.set(`/nodepool/requests/${ids[0]}`, Buffer.from('{"state":"failed"}'));
      await expect(requester.fulfilled(ids, 10_000)).rejects.toThrow(`request ${ids[0]} failed`);
    } finally {
      await server.stop();
    }
  });
});
