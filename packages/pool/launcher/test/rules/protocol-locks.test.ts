import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./world.ts";

test("an acceptance that is refused by the record's version leaves no contender of ours behind", async () => {
  const world = new World();
  await world.folder(paths.requestLock("100-0000000000"));
  let meddled = false;
  world.fault = ({ kind, path }) => {
    // Somebody without a fence declines between our lock and our `pending`.
    if (kind === "write" && path.includes("requests-lock/100-0000000000/") && !meddled) {
      meddled = true;
      const record = { ...world.request("100-0000000000"), declined_by: ["python"] };
      void world.other.set(paths.request("100-0000000000"), Buffer.from(JSON.stringify(record)));
    }
    return undefined;
  };
  await world.start("a", launcherConfig([fakeProvider()]));
  const id = await world.ask();
  const record = await world.fulfilled(id, 5_000);
  expect(meddled).toBe(true);
  expect(record.declined_by).toEqual(["python"]);
  await world.run(1_000);
  expect(world.children(paths.requestLock(id))).toEqual([]);
});

test("a contender of another client, whatever its name, is never overtaken", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  const held = "100-0000000000";
  const contender = await world.contend(paths.requestLock(held));
  const id = await world.ask();
  expect(id).toBe(held);
  await world.run(10_000);
  expect(world.request(id)?.state).toBe("requested");
  await world.settle(world.other.delete(contender));
  await world.fulfilled(id);
});

test("a node is made `init` alone; lock parent, contender and `building` at version 0 go in one commit", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  const { nodes } = await world.fulfilled(await world.ask());
  const [id] = nodes as string[];
  const made = world.cluster.log.findIndex((write) =>
    write.results.some((result) => result.op === "create" && result.path === paths.node(id!)),
  );
  // The request must still be ours.
  const lock = expect.stringContaining(paths.requestLock("100-0000000000"));
  expect(world.cluster.log[made]!.ops).toMatchObject([
    { op: "create", path: `${paths.nodes}/` },
    { op: "check", path: lock },
  ]);
  const next = world.cluster.log
    .slice(made + 1)
    .find((write) => write.ops.some((op) => op.path.startsWith(paths.node(id!))))!;
  expect(next.ops.map(({ op }) => op)).toEqual(["create", "create", "set", "check"]);
  expect(next.ops[0]!.path).toBe(paths.nodeLock(id!));
  expect(next.ops[2]).toMatchObject({ op: "set", path: paths.node(id!), version: 0 });
  expect(next.ops[3]!.path).toEqual(lock);
});

test("the finish is one commit: the last node `ready`, node contenders, request `fulfilled`, request contender, and one request only", async () => {
  const world = new World();
  await world.start("a", launcherConfig([fakeProvider()]));
  const ids = [await world.ask({ node_types: ["small", "large"] }), await world.ask(), await world.ask()];
  for (const id of ids) await world.fulfilled(id);
  for (const id of ids) {
    const finish = world.cluster.log.filter((write) =>
      write.ops.some(
        (op) =>
          op.op === "set" &&
          op.path === paths.request(id) &&
          JSON.parse(Buffer.from(op.data).toString()).state === "fulfilled",
      ),
    );
    expect(finish).toHaveLength(1);
    const { ops } = finish[0]!;
    expect(ops.at(-1)).toMatchObject({ op: "delete" });
    expect(ops.at(-1)!.path).toContain(`${paths.requestLock(id)}/`);
    expect(ops.at(-2)).toMatchObject({ op: "set", path: paths.request(id) });
    const nodes = world.request(id)!.nodes as string[];
    const [ready, ...unlocked] = ops.slice(0, -2);
    expect(nodes.map(paths.node)).toContain(ready!.path);
    expect(ready).toMatchObject({ op: "set" });
    expect(unlocked.map((op) => [op.op, op.path.split("/lock/")[0]])).toEqual(
      nodes.map((node) => ["delete", paths.node(node)]),
    );
  }
  for (const write of world.cluster.log) {
    const requests = write.ops.filter((op) => op.op !== "check" && /^\/nodepool\/requests\/./.test(op.path));
    expect(new Set(requests.map((op) => op.path)).size).toBeLessThanOrEqual(1);
  }
});

test("ids come only from sequential creates", async () => {
  const world = new World();
  const labels = new Map([
    ["large", { name: "large", minReady: 2, maxReadyAgeMs: Number.POSITIVE_INFINITY }],
  ]);
  await world.start("a", launcherConfig([fakeProvider()], { labels }));
  await world.fulfilled(await world.ask({ node_types: ["small", "large"] }));
  await world.run(5_000);
  let creates = 0;
  for (const { client, ops } of world.cluster.log) {
    for (const op of ops) {
      if (client === "other" || op.op !== "create" || !/^\/nodepool\/(nodes|requests)\/[^/]*$/.test(op.path))
        continue;
      creates++;
      expect(op.sequential).toBe(true);
    }
  }
  expect(creates).toBeGreaterThanOrEqual(4);
});
