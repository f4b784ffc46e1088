import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { nodeUse } from "../src/metastatic/backings.ts";
import { World } from "./rules/world.ts";

test("a node whose record cannot be read counts as used, and one without a record as between two uses", async () => {
  const world = new World();
  const id = await world.makeNode({ state: "ready", provider: "cloud", pool: "main", type: ["small"] });
  const use = () => world.settle(nodeUse(world.other, id));
  expect(await use()).toBe("unused");
  for (const text of ["nonsense", "", "[]", '{"state": "verifying"}']) {
    await world.put(paths.node(id), text);
    expect(await use(), text).toBe("used");
  }
  await world.settle(world.other.delete(paths.node(id)));
  expect(await use()).toBe("between");
});
