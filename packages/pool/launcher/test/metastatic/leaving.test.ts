import type { CounterName } from "@nodeyard/telemetry";
import { describe, expect, test } from "vitest";
import { launcherConfig } from "../rules/world.ts";
import { config, Lab, metal, OWNER } from "./lab.ts";

const LONG = { "max-parallel-jobs": 1, "grace-time": 3_600 };
const WITHOUT = launcherConfig([metal()]);

describe("a provider that leaves the configuration", () => {
  test("gives back what is empty at once, and what is in use with its last slot", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config({ ...LONG, "max-parallel-jobs": 2 }));
    const [first, second, returned] = [await lab.get(), await lab.get(), await lab.get()];
    const [used, empty] = [lab.place(first).backing, lab.place(returned).backing];
    await lab.giveBack(returned);
    await lab.settle(a.launcher.reconfigure(WITHOUT));
    expect(lab.pools()).toEqual([]);
    await lab.gone(empty);
    await lab.giveBack(first);
    await lab.run(30_000);
    expect(lab.node(used)?.state).toBe("in-use");
    expect(lab.lockData(used)).toEqual([OWNER]);
    await lab.giveBack(second);
    await lab.gone(used, 5_000);
    expect(lab.children("/nodeyard/slots")).toEqual([]);
    const clean = () => lab.cloud.inspect().length === 0;
    await lab.until("the cloud is empty", clean);
    const count = (name: CounterName, change: string) =>
      a.counters.value(name, { provider: "slicer", change });
    expect(["claimed", "freed", "lost"].map((change) => count("launcher.slots", change))).toEqual([3, 3, 0]);
    const changes = ["asked", "adopted", "released", "failed"];
    expect(changes.map((change) => count("launcher.backing_nodes", change))).toEqual([2, 2, 2, 0]);
    // Nothing of it is left running: its place among the owners is free.
    await lab.until("nobody looks after it", () => elected(lab).length === 0, 5_000);
  });

  test("takes out idle nodes, and asks for nothing more", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config(LONG, {}, [metal({ "max-servers": 1 })]));
    const idle = await lab.get();
    const waiting = await lab.slice();
    await lab.until("another is asked for", () => asked(lab).length === 1);
    await lab.settle(lab.other.delete(`/nodepool/requests/${idle.allocated_to}`));
    await lab.settle(a.launcher.reconfigure(WITHOUT));
    await lab.until("nothing is asked for", () => asked(lab).length === 0, 5_000);
    await lab.gone(idle.id, 5_000);
    await lab.gone(lab.place(idle).backing, 5_000);
    // A launch that waited for a slot ends, and does not wait out launch-timeout.
    await lab.until("the request ended", () => lab.request(waiting)?.state === "failed", 60_000);
  });

  test("ends the requests that wait for a slot at once", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config(LONG, {}, [metal({ "max-servers": 1 })]));
    const used = await lab.get();
    const waiting = await lab.slice();
    await lab.until("another is asked for", () => asked(lab).length === 1);
    await lab.settle(a.launcher.reconfigure(WITHOUT));
    await lab.until("the request ended", () => lab.request(waiting)?.state === "failed", 10_000);
    expect(lab.node(used.id)?.state).toBe("ready");
    expect(lab.node(lab.place(used).backing)?.state).toBe("in-use");
  });

  test("and comes back while a slot is in use is served as if it had not gone", async () => {
    const lab = new Lab();
    const settings = { ...LONG, "max-parallel-jobs": 2 };
    const a = await lab.start("a", config(settings));
    const first = await lab.get();
    await lab.settle(a.launcher.reconfigure(WITHOUT));
    await lab.run(10_000);
    await lab.settle(a.launcher.reconfigure(config(settings)));
    const second = await lab.get();
    expect(lab.place(second)).toEqual({ backing: lab.place(first).backing, slot: 1 });
    await lab.giveBack(first);
    await lab.giveBack(second);
    await lab.run(60_000);
    expect(lab.node(lab.place(first).backing)?.state).toBe("in-use");
    lab.check();
  });

  test("at one launcher goes on at the other; at both at once it is cleared away", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config(LONG));
    const b = await lab.start("b", config(LONG));
    const [first, second] = [await lab.get(), await lab.get()];
    await lab.settle(a.launcher.reconfigure(WITHOUT));
    await lab.giveBack(first);
    await lab.run(30_000);
    expect(lab.node(lab.place(first).backing)?.state).toBe("in-use");
    await lab.settle(a.launcher.reconfigure(config(LONG)));
    await lab.settle(Promise.all([a, b].map(({ launcher }) => launcher.reconfigure(WITHOUT))));
    await lab.gone(lab.place(first).backing);
    await lab.giveBack(second);
    await lab.gone(lab.place(second).backing);
  });

  test("and is taken over by another launcher is left to that one", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config(LONG));
    const used = await lab.get();
    await lab.settle(a.launcher.reconfigure(WITHOUT));
    await lab.run(5_000);
    await lab.start("b", config(LONG));
    await lab.giveBack(used);
    await lab.run(30_000);
    expect(lab.node(lab.place(used).backing)?.state).toBe("in-use");
    expect(elected(lab)).toHaveLength(1);
  });
});

describe("what a provider left whose launcher was started anew without it", () => {
  const MINUTE = 60_000;

  test("is released after ten minutes without a launcher, in use with its last slot, and is announced before", async () => {
    const lab = new Lab();
    const a = await lab.start("a", config({ ...LONG, "max-parallel-jobs": 2 }));
    const [first, second, returned] = [await lab.get(), await lab.get(), await lab.get()];
    const idle = await lab.get();
    await lab.settle(lab.other.delete(`/nodepool/requests/${idle.allocated_to}`));
    await lab.giveBack(second);
    const [used, empty] = [lab.place(first).backing, lab.place(returned).backing];
    await lab.settle(a.launcher.close());
    await lab.start("b", WITHOUT);
    await lab.start("c", WITHOUT);
    const returnedFields = { ...lab.node(returned.id), state: "used" };
    await lab.put(`/nodepool/nodes/${returned.id}`, returnedFields);
    await lab.run(9 * MINUTE);
    expect(lab.node(empty)?.state).toBe("in-use");
    expect(lab.node(idle.id)?.state).toBe("ready");
    const reported = await lab.explain("node", used);
    expect(reported.waits_for).toMatchObject({ code: "node.unserved", facts: { provider: "slicer" } });
    expect(reported.next).toMatch(/10 minutes.* It goes when its last slot is returned/);
    expect((await lab.explain("node", returned.id)).next).toMatch(/10 minutes/);
    await lab.gone(returned.id, 3 * MINUTE);
    await lab.gone(idle.id);
    await lab.gone(empty);
    await lab.run(5 * MINUTE);
    expect(lab.node(used)?.state).toBe("in-use");
    await lab.giveBack(first);
    await lab.gone(used, 10_000);
    expect(lab.children("/nodeyard/slots")).toEqual([]);
    await lab.until("the cloud is empty", () => lab.cloud.inspect().length === 0);
    await lab.until("nobody looks after it", () => elected(lab).length === 0, 2 * MINUTE);
    for (const { counters } of lab.members) expect(counters.value("launcher.unexpected")).toBe(0);
  });

  test("is left alone while any launcher serves it, and for as long as one may take to come back", async () => {
    const lab = new Lab();
    let serving = await lab.start("a", config(LONG));
    await lab.start("b", WITHOUT);
    const used = await lab.get();
    const { backing } = lab.place(used);
    await lab.giveBack(used);
    await lab.run(30 * MINUTE);
    for (const name of ["c", "d"]) {
      expect(lab.node(backing)?.state).toBe("in-use");
      await lab.settle(serving.launcher.close());
      await lab.run(9 * MINUTE);
      serving = await lab.start(name, config(LONG));
      await lab.run(9 * MINUTE);
    }
    expect(lab.node(backing)?.state).toBe("in-use");
    expect(elected(lab)).toHaveLength(1);
  });

  test("passes to the launcher that serves it again while it is released, and is served as before", async () => {
    const lab = new Lab();
    const settings = { ...LONG, "max-parallel-jobs": 2 };
    const a = await lab.start("a", config(settings));
    const first = await lab.get();
    await lab.settle(a.launcher.close());
    const b = await lab.start("b", WITHOUT);
    const drains = () => b.log.lines.some(({ text }) => text.startsWith("no launcher serves a provider"));
    await lab.until("it is being given back", drains, 15 * MINUTE);
    await lab.settle(b.launcher.reconfigure(config(settings)));
    const second = await lab.get();
    expect(lab.place(second)).toEqual({ backing: lab.place(first).backing, slot: 1 });
    await lab.giveBack(first);
    await lab.giveBack(second);
    await lab.run(20 * MINUTE);
    expect(lab.node(lab.place(first).backing)?.state).toBe("in-use");
    lab.check();
  });

  test("is not touched when a launcher of another kind gave out its slots; explain says so, and what to do", async () => {
    const lab = new Lab();
    const user_data = JSON.stringify({ owner: OWNER, label: "slice", slots: 2, failed: false, launched: 1 });
    const backing = { provider: "metal", pool: "main", type: ["large"], external_id: "m", user_data };
    const id = await lab.makeNode({ ...backing, state: "in-use" });
    await lab.contend(`/nodepool/nodes/${id}/lock`, Buffer.from(OWNER));
    await lab.start("b", launcherConfig([]));
    await lab.run(30 * MINUTE);
    expect(lab.node(id)?.state).toBe("in-use");
    expect(lab.lockData(id)).toEqual([OWNER]);
    expect((await lab.explain("node", id)).next).toMatch(/not Nodeyard's .* remove it again/);
  });
});

function asked(lab: Lab): string[] {
  return lab.children("/nodepool/requests").filter((id) => lab.request(id)?.requestor === OWNER);
}

function elected(lab: Lab): string[] {
  return lab.children("/nodeyard/elections/metastatic%3Aslicer");
}
