import { beforeAll, describe, expect, test } from "vitest";
import { requireZooKeeper } from "../../../../testing/zookeeper/index.ts";
import type { ZooKeeper } from "../src/index.ts";
import { client, freshPath, serverHere } from "./support.ts";

describe.skipIf(requireZooKeeper())("large things", () => {
  const server = serverHere();
  let zk: ZooKeeper;

  beforeAll(async () => {
    zk = await client(server, { sessionTimeoutMs: 60_000 });
  });

  test("znodes of 1 MB go there and back unharmed, many at once", async () => {
    const parent = await freshPath(zk);
    const data = (seed: number) => Buffer.alloc(1_000_000, `${seed} bottles of beer `);
    const all = Array.from({ length: 12 }, (_, i) => i);
    await Promise.all(all.map((i) => zk.create(`${parent}/${i}`, data(i))));
    const read = await Promise.all(all.map((i) => zk.get(`${parent}/${i}`)));
    for (const i of all) expect(read[i]?.data.equals(data(i))).toBe(true);
  });

  test("100,000 children are made, listed and seen by one recursive watch", async () => {
    const parent = await freshPath(zk);
    const count = 100_000;
    let seen = 0;
    await zk.addWatch(parent, "persistent-recursive", () => {
      seen++;
    });
    const batch = 1_000;
    const made: Promise<unknown>[] = [];
    for (let i = 0; i < count; i += batch) {
      const ops = Array.from({ length: batch }, (_, k) => ({
        op: "create" as const,
        path: `${parent}/node-${i + k}`,
      }));
      made.push(zk.multi(ops));
    }
    await Promise.all(made);
    const { children, stat } = await zk.children(parent);
    expect(stat.numChildren).toBe(count);
    expect(new Set(children).size).toBe(count);
    expect(seen).toBe(count);
  });

  test("a deep and wide tree is deleted whole", async () => {
    const parent = await freshPath(zk);
    const paths = [""];
    // Five levels of six children each; the list grows while it is walked.
    for (const base of paths) if (base.length < 10) for (let i = 0; i < 6; i++) paths.push(`${base}/${i}`);
    for (let i = 1; i < paths.length; i += 1_000) {
      const ops = paths.slice(i, i + 1_000).map((path) => ({ op: "create" as const, path: parent + path }));
      await zk.multi(ops);
    }
    expect(paths.length).toBeGreaterThan(9_000);
    await zk.deleteRecursive(parent);
    expect(await zk.exists(parent)).toBeUndefined();
  });
});
