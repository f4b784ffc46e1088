import type { Driver, DriverContext } from "@nodeyard/driver";
import { decodeRemark, REMARKS, remarkPath } from "@nodeyard/model";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

test("the last remark on a node is in the tree until the node is gone; remarks on others' machines are not", async () => {
  const world = new World();
  let context: DriverContext | undefined;
  const wrap = (driver: Driver): Driver => ({
    ...driver,
    open: (config, given) => {
      context = given;
      return driver.open(config, given);
    },
  });
  await world.start("a", launcherConfig([fakeProvider()]), { wrap });
  const id = await world.ask();
  const [nodeId] = (await world.fulfilled(id)).nodes as string[];
  const { installation, remark } = context!;
  const tag = { installation, provider: "cloud", pool: "main", nodeId: nodeId! };
  remark!({ ...tag, installation: "another" }, "not ours");
  remark!({ ...tag, nodeId: "0000009999" }, "no node");
  remark!(tag, "first");
  await world.run(1_000);
  remark!(tag, "the cloud takes it back");
  await world.run(1_000);
  expect(await world.children(REMARKS)).toEqual([nodeId]);
  const { data } = await world.settle(world.other.get(remarkPath(nodeId!)));
  expect(decodeRemark(data)).toMatchObject({ text: "the cloud takes it back" });
  await world.run(180_000);
  expect(await world.children(REMARKS)).toEqual([nodeId]);

  const machine = String(world.node(nodeId!)?.external_id);
  await world.settle(world.other.delete(`/nodepool/requests/${id}`));
  await world.settle(world.cloud.delete(machine, new AbortController().signal));
  await world.until("the node is gone", () => world.nodes().length === 0, 600_000);
  await world.run(180_000);
  expect(await world.children(REMARKS)).toEqual([]);
});
