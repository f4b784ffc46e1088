import { readFile } from "node:fs/promises";
import { seededRandom, systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../../testing/zookeeper/index.ts";
import { TreeError } from "../../src/errors.ts";
import { requestBytes } from "../../src/request-size.ts";
import { connectZooKeeperTree } from "../../src/zookeeper/index.ts";

const handles = { clock: systemClock, random: seededRandom(1) };

describe.skipIf(requireZooKeeper())("a tree on ZooKeeper", () => {
  let server: ZooKeeperServer;
  beforeAll(async () => {
    server = await startZooKeeper({ tls: true });
  });
  afterAll(() => server?.stop());

  const plain = () => ({ ...handles, servers: `127.0.0.1:${server.plainPort}` });

  test("lives below its chroot", async () => {
    await using whole = await connectZooKeeperTree(plain());
    await whole.create("/below");
    await using tree = await connectZooKeeperTree({ ...plain(), chroot: "/below" });
    await tree.create("/a");
    expect(await whole.stat("/below/a")).toEqual(await tree.stat("/a"));
  });

  test("is reached over TLS with a client certificate, and not without", async () => {
    const { ca, cert, key } = server.tls!;
    const secure = { ...handles, servers: `127.0.0.1:${server.port}` };
    const [caPem, certPem, keyPem] = await Promise.all([ca, cert, key].map((path) => readFile(path)));
    await using tree = await connectZooKeeperTree({
      ...secure,
      tls: { ca: caPem!, cert: certPem!, key: keyPem! },
    });
    expect(await tree.stat("/")).toBeDefined();
    const bare = connectZooKeeperTree({ ...secure, tls: { ca: caPem! }, connectDeadlineMs: 1_000 });
    await expect(bare).rejects.toBeInstanceOf(TreeError);
  });

  test("says in one line that no server accepts it", async () => {
    const nobody = connectZooKeeperTree({ ...handles, servers: "127.0.0.1:1", connectDeadlineMs: 300 });
    await expect(nobody).rejects.toMatchObject({
      code: "tree.call_ended",
      message: expect.stringContaining("connecting to 127.0.0.1:1"),
    });
  });

  test("refuses what only a long chroot makes too long, and stays connected", async () => {
    await using above = await connectZooKeeperTree(plain());
    const chroot = `/${"c".repeat(200)}`;
    await above.create(chroot);
    await using tree = await connectZooKeeperTree({ ...plain(), chroot });
    const room = tree.capabilities.maxRequestBytes - requestBytes([{ op: "create", path: "/big" }]);
    const refused = tree.create("/big", new Uint8Array(room));
    await expect(refused).rejects.toMatchObject({ code: "tree.too_large", outcome: "none" });
    expect(await tree.stat("/big")).toBeUndefined();
    expect(tree.session().epoch).toBe(1);
  });

  test("sync takes its turn among the writes of all servers: one transaction, whether its path exists or not", async () => {
    await using tree = await connectZooKeeperTree(plain());
    const { stat: before } = await tree.create("/before-sync");
    await Promise.all([tree.sync("/before-sync"), tree.sync("/nowhere")]);
    const { stat: after } = await tree.create("/after-sync");
    expect(after.czxid - before.czxid).toBe(3n);
  });

  test("knows a commit's time from a set within it, to the millisecond", async () => {
    await using tree = await connectZooKeeperTree(plain());
    const begun = systemClock.monotonic();
    await tree.create("/timed");
    const [, made] = await tree.commit([
      { op: "set", path: "/timed", data: new Uint8Array(1) },
      { op: "create", path: "/timed/child" },
    ]);
    expect(await tree.stat("/timed/child")).toEqual(made.stat);
    // One machine has one clock: what is measured is off by the time that the calls took, at most.
    expect(Math.abs(tree.clockOffset())).toBeLessThan(systemClock.monotonic() - begun + 25);
  });
});
