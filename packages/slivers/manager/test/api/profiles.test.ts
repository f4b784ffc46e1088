import { describe, expect, test } from "vitest";
import { XmlRpcDouble } from "../../src/api/xmlrpc/write.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { incoming } from "../core/arbitrary.ts";
import { ApiRig, ROOT, sliver } from "./rig.ts";

const started = async (profile: "r0" | "v2") => {
  const rig = new ApiRig(profile);
  await rig.start();
  const share = (name: string, cpuShare: number, more = {}) =>
    incoming(name, 1, { rspec: { ...POLICIES[profile].defaults, cpuShare }, ...more });
  await rig.deliver(1, [
    share("ada", 64),
    share("bob", 32, { delegations: [{ caller: "ada", method: "GetRSpec" }] }),
    share("cyd", 32),
    share("laz", 32, { instantiation: "delegated" }),
    share("ctl", 32, { kind: "controller", instantiation: "nm-controller" }),
  ]);
  return rig;
};
const ada = sliver("ada");

describe("the seed's revision (r0)", () => {
  test("Help names every method; a wrong count and an unknown method are 101 and 100", async () => {
    const rig = await started("r0");
    const help = await rig.call(ada, "Help");
    for (const method of [
      "Create",
      "Destroy",
      "Help",
      "Start",
      "Stop",
      "GetEffectiveRSpec",
      "GetRSpec",
      "GetLoans",
      "SetLoans",
    ])
      expect(help).toContain(method);
    await expect(rig.call(ada, "Help", [1])).rejects.toMatchObject({
      code: 101,
      message: "Invalid argument count: got 1, expecting 0.",
    });
    await expect(rig.call(ada, "Foo")).rejects.toMatchObject({
      code: 100,
      message:
        "Invalid API method Foo. Valid choices are Create, Destroy, GetEffectiveRSpec, GetLoans, GetRSpec, Help, SetLoans, Start, Stop",
    });
    await expect(rig.call(ROOT, "Ticket", ["x"])).rejects.toMatchObject({ code: 100 });
  });

  test("root and an unknown target, or a controller: 102; another's sliver: 108, whether it exists or not", async () => {
    const rig = await started("r0");
    for (const target of ["nobody", "ctl", 5, ["ada"]])
      await expect(rig.call(ROOT, "Stop", [target])).rejects.toMatchObject({ code: 102 });
    for (const target of ["bob", "nobody", "ctl"])
      await expect(rig.call(ada, "Stop", [target])).rejects.toMatchObject({
        code: 108,
        message: "Permission denied.",
      });
    expect(rig.found).toContain("bob:running");
    expect(await rig.call(ada, "Stop", ["ada"])).toBe(1);
    expect(rig.found).toContain("ada:stopped");
    expect(await rig.call(ada, "Start", ["ada"])).toBe(1);
    expect(rig.found).toContain("ada:running");
  });

  test("a delegation of one method", async () => {
    const rig = await started("r0");
    expect(await rig.call(ada, "GetRSpec", ["bob"])).toMatchObject({ cpu_share: 32 });
    await expect(rig.call(ada, "GetLoans", ["bob"])).rejects.toMatchObject({ code: 108 });
  });

  test("GetRSpec is the nine resources of the time, all integers", async () => {
    const rig = await started("r0");
    expect(await rig.call(ROOT, "GetRSpec", ["bob"])).toEqual({
      enabled: 1,
      cpu_min: 0,
      cpu_share: 32,
      net_min: 8,
      net_max: 1_000_000_000,
      net2_min: 8,
      net2_max: 1_000_000_000,
      net_share: 1,
      disk_max: 5_000_000,
    });
  });

  test("loans: set, honoured as far as they go, kept whole, and not lent on", async () => {
    const rig = await started("r0");
    const list = [
      ["bob", "cpu_share", 40],
      ["cyd", "cpu_share", 10],
      ["bob", "cpu_share", 8],
    ];
    expect(await rig.call(ada, "SetLoans", ["ada", list])).toBe(1);
    const shares = async () =>
      Promise.all(
        ["ada", "bob", "cyd"].map(
          async (name) =>
            ((await rig.call(ROOT, "GetEffectiveRSpec", [name])) as { cpu_share: number }).cpu_share,
        ),
      );
    expect(await shares()).toEqual([16, 80, 32]);
    expect(await rig.call(ada, "GetRSpec", ["ada"])).toMatchObject({ cpu_share: 64 });
    expect(await rig.call(ada, "GetLoans", ["ada"])).toEqual(list);
    expect(await rig.call(sliver("bob"), "SetLoans", ["bob", [["cyd", "cpu_share", 30]]])).toBe(1);
    expect(await shares()).toEqual([16, 80, 32]);
    expect(await rig.call(sliver("bob"), "SetLoans", ["bob", [["cyd", "cpu_share", 16]]])).toBe(1);
    expect(await shares()).toEqual([16, 64, 48]);
    // The borrower goes, and comes back: the loan holds again without a call.
    const share = (name: string, number: number, cpuShare = 32) =>
      incoming(name, number, { rspec: { ...POLICIES.r0.defaults, cpuShare } });
    await rig.deliver(2, [share("ada", 2, 64), share("cyd", 2)]);
    expect(await rig.call(ROOT, "GetEffectiveRSpec", ["ada"])).toMatchObject({ cpu_share: 54 });
    await rig.deliver(3, [share("ada", 3, 64), share("bob", 3), share("cyd", 3)]);
    expect(await shares()).toEqual([16, 80, 32]);
    expect(await rig.call(ada, "SetLoans", ["ada", []])).toBe(1);
    expect(await shares()).toEqual([64, 32, 32]);
  });

  test("33: loans that are none are 102 and change nothing; amount 0 and an unknown recipient are fine", async () => {
    const rig = await started("r0");
    await rig.call(ada, "SetLoans", ["ada", [["bob", "cpu_share", 1]]]);
    const before = rig.manager.state;
    const bad = [
      [["bob", "cpu_share", "1"]],
      [["bob", "cpu_share", -1]],
      [["bob", "disk_max", 1]],
      [["bob", "cpu_share"]],
      [["bob", "cpu_share", true]],
      [["bob", "cpu_share", new XmlRpcDouble(1)]],
      [["bob", "cpuShare", 1]],
      [["b\u00f6b", "cpu_share", 1]],
      [["bob\nroot", "cpu_share", 1]],
      { bob: 1 },
      "x",
    ];
    for (const value of bad)
      await expect(rig.call(ada, "SetLoans", ["ada", value])).rejects.toMatchObject({ code: 102 });
    expect(rig.manager.state).toBe(before);
    expect(await rig.call(ada, "SetLoans", ["ada", [["nobody", "cpu_share", 0]]])).toBe(1);
  });

  test("Create and Destroy of what is not delegated: 1, and nothing happens", async () => {
    const rig = await started("r0");
    const before = rig.manager.state;
    expect(await rig.call(ada, "Create", ["ada"])).toBe(1);
    expect(await rig.call(ada, "Destroy", ["ada"])).toBe(1);
    expect(await rig.call(sliver("laz"), "Start", ["laz"])).toBe(1);
    expect(rig.manager.state).toBe(before);
    const laz = sliver("laz");
    expect(rig.found).not.toContain("laz:running");
    expect(await rig.call(laz, "Create", ["laz"])).toBe(1);
    expect(rig.found).toContain("laz:running");
    const { incarnation } = rig.manager.state.records.get("laz")!.local;
    expect(await rig.call(laz, "Destroy", ["laz"])).toBe(1);
    expect(rig.found).not.toContain("laz:running");
    expect(await rig.call(laz, "Create", ["laz"])).toBe(1);
    expect(rig.found).toContain("laz:running");
    expect(rig.manager.state.records.get("laz")!.local.incarnation).not.toBe(incarnation);
  });

  test("a sum beyond 32 bits is answered with the largest integer there is", async () => {
    const rig = await started("r0");
    const lend = [["bob", "net_max", 999_999_992]];
    await rig.call(ada, "SetLoans", ["ada", lend]);
    await rig.call(sliver("cyd"), "SetLoans", ["cyd", lend]);
    expect(await rig.call(ROOT, "GetEffectiveRSpec", ["bob"])).toMatchObject({ net_max: 2_147_483_647 });
    expect(await rig.json(ROOT, "GetEffectiveRSpec", ["bob"])).toMatchObject({ netCap: 2_999_999_984 });
  });
});

describe("the 2.0 line (v2)", () => {
  test("Help is sorted, with a line of stars per method", async () => {
    const help = (await (await started("v2")).call(ada, "Help")) as string;
    const names = [...help.matchAll(/^\*\*\*\* (\w+)$/gm)].map(([, name]) => name);
    expect(names).toEqual([...names].sort());
    expect(names).toContain("GetSSHKeys");
    expect(names).toHaveLength(15);
  });

  test("what a method throws is 104 with the fault inside; permission names the caller", async () => {
    const rig = await started("v2");
    await expect(rig.call(ada, "SetLoans", ["ada", "x"])).rejects.toMatchObject({
      code: 104,
      message: "Error in call: <Fault 102: 'Invalid argument: loans must be an array'>",
    });
    await expect(rig.call(ada, "Create", ["ada"])).rejects.toMatchObject({
      code: 104,
      message: expect.stringContaining("Only PLC"),
    });
    await expect(rig.call(ada, "Stop", ["bob"])).rejects.toMatchObject({
      code: 108,
      message: "ada: Permission denied.",
    });
    await expect(rig.call(sliver("laz"), "Start", ["laz"])).rejects.toMatchObject({ code: 104 });
    await expect(rig.call(ROOT, "Stop", ["nobody"])).rejects.toMatchObject({ code: 102 });
  });

  test("resources by the names and units of the time", async () => {
    const rig = await started("v2");
    expect(await rig.call(ROOT, "GetRSpec", ["ada"])).toEqual({
      enabled: 1,
      cpu_pct: 0,
      cpu_share: 2,
      cpu_cores: "0b",
      net_min_rate: 0,
      net_max_rate: 1_000_000,
      net_share: 1,
      net_i2_min_rate: 0,
      net_i2_max_rate: 1_000_000,
      net_i2_share: 1,
      net_max_kbyte: 10_546_875,
      net_thresh_kbyte: 9_492_187,
      net_i2_max_kbyte: 31_640_625,
      net_i2_thresh_kbyte: 28_476_562,
      disk_max: 10_000_000,
      capabilities: "",
      ip_addresses: "0.0.0.0",
      tags: {},
    });
    expect(
      await rig.call(ada, "SetLoans", [
        "ada",
        [
          ["bob", "cpu_share", 1],
          ["bob", "net_max_rate", 10],
        ],
      ]),
    ).toBe(1);
    expect(await rig.call(ROOT, "GetEffectiveRSpec", ["bob"])).toMatchObject({
      cpu_share: 2,
      net_max_rate: 1_000_010,
    });
    // The seed's profile beside it, on the same records.
    expect(await rig.call(ROOT, "GetLoans", ["ada"], "/r0")).toEqual([
      ["bob", "cpu_share", 32],
      ["bob", "net_max", 10_000],
    ]);
  });

  test("GetRecord, GetXIDs and GetSSHKeys", async () => {
    const rig = await started("v2");
    await rig.call(ada, "SetLoans", ["ada", [["bob", "cpu_share", 1]]]);
    expect(await rig.call(ada, "GetRecord")).toMatchObject({
      name: "ada",
      timestamp: 1,
      type: "sliver.VServer",
      rspec: { cpu_share: 2 },
      _rspec: { cpu_share: 1 },
      _loans: [["bob", "cpu_share", 1]],
    });
    await expect(rig.call(ROOT, "GetRecord")).rejects.toMatchObject({ code: 104 });
    expect(await rig.call(ROOT, "GetXIDs")).toEqual({ ada: 60_001, bob: 60_002, cyd: 60_003 });
    expect(Object.keys((await rig.call(ROOT, "GetSSHKeys")) as object).sort()).toEqual([
      "ada",
      "bob",
      "ctl",
      "cyd",
      "laz",
    ]);
    await expect(rig.call(ada, "GetSSHKeys")).rejects.toMatchObject({ code: 108 });
  });

  test("ReCreate: the old one goes, another comes, loans stay", async () => {
    const rig = await started("v2");
    await rig.call(ada, "SetLoans", ["ada", [["bob", "cpu_share", 1]]]);
    const before = rig.manager.state.records.get("ada")!.local;
    expect(await rig.call(ada, "ReCreate", ["ada"])).toBe(1);
    const after = rig.manager.state.records.get("ada")!.local;
    expect(after.incarnation).not.toBe(before.incarnation);
    expect(after.loans).toEqual(before.loans);
    expect(rig.found.filter((one) => one.startsWith("ada"))).toEqual(["ada:running"]);
  });

  test("a call says what failed, and what it asked for is tried again", async () => {
    const rig = await started("v2");
    let fail = true;
    rig.machine.disturb = (step) => {
      if (step === "create" && fail) throw new Error("no room on the disk");
    };
    await expect(rig.call(sliver("laz"), "Create", ["laz"])).rejects.toMatchObject({
      code: 104,
      message: expect.stringContaining("no room on the disk"),
    });
    fail = false;
    await rig.pass(60_000);
    expect(rig.found).toContain("laz:running");
  });
});
