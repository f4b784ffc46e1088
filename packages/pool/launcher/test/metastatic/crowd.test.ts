import { paths } from "@nodeyard/model";
import { describe, expect, test } from "vitest";
import { config, Lab } from "./lab.ts";

describe("many at once", () => {
  test("200 requests on 25 backing nodes of 8 slots", async () => {
    const lab = new Lab();
    const { counters } = await lab.start("a", config({ "max-parallel-jobs": 8 }));
    const ids: string[] = [];
    for (let index = 0; index < 200; index++) ids.push(await lab.slice());
    for (const id of ids) await lab.fulfilled(id);
    lab.check();
    expect(lab.ends()).toHaveLength(200);
    expect(lab.backings().filter(({ state }) => state === "in-use")).toHaveLength(25);
    for (const { id } of lab.backings()) expect(lab.claims(id)).toHaveLength(8);
    // One launcher never tries for a slot that it has just chosen for another node.
    const count = (change: string) => counters.value("launcher.slots", { provider: "slicer", change });
    expect([count("claimed"), count("lost")]).toEqual([200, 0]);
  });

  test("two launchers on one provider share its backing nodes, and no slot is given twice", async () => {
    const lab = new Lab();
    const settings = config({ "max-parallel-jobs": 4, "grace-time": 60 });
    await lab.start("a", settings);
    await lab.start("b", settings);
    const open = new Set<string>();
    for (let index = 0; index < 40; index++) open.add(await lab.slice());
    const served = new Set<string>();
    await lab.until("all are served", () => {
      lab.check();
      for (const id of open) {
        const request = lab.request(id);
        if (request?.state !== "fulfilled") continue;
        open.delete(id);
        for (const node of request.nodes as string[])
          served.add(String(lab.node(node)?.launcher).split("-")[0]!);
      }
      return open.size === 0;
    });
    expect([...served].sort()).toEqual(["a.example", "b.example"]);
    expect(lab.backings()).toHaveLength(10);
    for (const node of lab.ends()) {
      await lab.put(paths.node(node.id), { ...lab.node(node.id), state: "used" });
      await lab.settle(lab.other.delete(paths.request(node.allocated_to as string)));
    }
    await lab.until("everything is gone", () => lab.nodes().length === 0, 90_000);
    expect(lab.children("/nodeyard/slots")).toEqual([]);
    expect(lab.cloud.inspect()).toHaveLength(0);
  });
});
