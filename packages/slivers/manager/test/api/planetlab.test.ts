import { expect, test } from "vitest";
import { writeResponse } from "../../src/api/xmlrpc/write.ts";
import { readGetSlivers } from "../../src/core/get-slivers.ts";
import type { Caller } from "../../src/core/permit.ts";
import { PROFILES } from "../../src/core/profiles.ts";
import { takeDocument } from "../../src/manager/documents.ts";
import { ApiRig, ROOT, sliver } from "./rig.ts";

const CENTRE: Caller = { account: "pl_ctl", role: "controller", generation: 0 };

const slice = (
  name: string,
  tags: Readonly<Record<string, string>> = {},
  instantiation = "plc-instantiated",
) => ({
  name,
  instantiation,
  attributes: Object.entries(tags).map(([tagname, value]) => ({ tagname, value })),
});
const ALL = [
  slice("site_exp", { vref: "f8-i386", cpu_share: "64", delegations: "pl_ctl" }),
  slice("site_web"),
  slice("site_lazy", { delegations: "pl_ctl" }, "delegated"),
  slice("pl_ctl", {}, "nm-controller"),
  slice("pl_default", { net_max_rate: "-1" }, "not-instantiated"),
];

/** A node that follows PlanetLab Central, and its next poll. */
async function node() {
  const rig = new ApiRig("v2");
  await rig.start();
  const poll = async (timestamp: number, slivers: readonly object[]) => {
    const delivery = readGetSlivers({ timestamp, slivers }, "node-1", PROFILES.v2);
    await takeDocument(rig.manager, () => ({ ...delivery, removes: slivers.length }));
    await rig.settle();
  };
  await poll(10, ALL);
  return { rig, poll };
}

const shareOf = async (rig: ApiRig, name: string) =>
  ((await rig.call(sliver(name), "GetEffectiveRSpec", [name])) as { cpu_share: number }).cpu_share;

test("slices, their images, `_default`, a delegate and what it may: a day of PlanetLab's", async () => {
  const { rig, poll } = await node();
  expect(rig.found).toEqual(["site_exp:running", "site_web:running"]);
  const exp = [...rig.machine.made.values()].find(({ config }) => config.name === "site_exp")!;
  expect(exp.config.image).toBe("f8-i386");
  // Of a slice `PREFIX_default` with -1: nobody is shaped.
  expect(exp.config.effective).toMatchObject({ netDay: 0, net2Day: 0 });
  expect(await rig.call(CENTRE, "Create", ["site_lazy"])).toBe(1);
  expect(rig.found).toContain("site_lazy:running");
  expect(await rig.call(CENTRE, "Stop", ["site_exp"])).toBe(1);
  expect(rig.found).toContain("site_exp:stopped");
  await expect(rig.call(CENTRE, "Stop", ["site_web"])).rejects.toMatchObject({ code: 108 });
  expect(Object.keys((await rig.call(CENTRE, "GetXIDs")) as object)).toContain("site_exp");
  expect(await rig.call(CENTRE, "Destroy", ["site_lazy"])).toBe(1);
  for (const timestamp of [20, 30]) await poll(timestamp, ALL);
  expect(rig.found).not.toContain("site_lazy:running");
});

test("a loan counts again when the borrower is listed again, without a call", async () => {
  const { rig, poll } = await node();
  await rig.call(sliver("site_exp"), "SetLoans", ["site_exp", [["site_web", "cpu_share", 20]]]);
  const both = async () => [await shareOf(rig, "site_exp"), await shareOf(rig, "site_web")];
  const lent = await both();
  await poll(
    20,
    ALL.filter(({ name }) => name !== "site_web"),
  );
  expect(await shareOf(rig, "site_exp")).toBe(lent[0]! + 20);
  await poll(30, ALL);
  expect(await both()).toEqual(lent);
});

test("a ticket older than the last full update brings no unknown slice", async () => {
  const { rig } = await node();
  const ticket = (timestamp: number) =>
    writeResponse({ timestamp, slivers: [slice("site_new", {}, "delegated")] });
  await expect(rig.call(ROOT, "AdminTicket", [ticket(9)])).rejects.toMatchObject({ code: 104 });
  expect(rig.manager.state.records.has("site_new")).toBe(false);
  expect(await rig.call(ROOT, "AdminTicket", [ticket(11)])).toBe(1);
  expect(rig.found).toContain("site_new:running");
});

test("a slice that becomes a delegate has nothing on the machine any more, and back again is made once", async () => {
  const { rig, poll } = await node();
  const [exp, ...rest] = ALL;
  await poll(20, [{ ...exp!, instantiation: "nm-controller" }, ...rest]);
  expect(rig.found).toEqual(["site_web:running"]);
  await poll(30, ALL);
  await poll(40, ALL);
  expect(rig.found).toEqual(["site_exp:running", "site_web:running"]);
  expect(rig.log.filter((line) => /create.* of site_exp$/.test(line))).toHaveLength(2);
});
