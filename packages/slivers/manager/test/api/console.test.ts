import { describe, expect, test } from "vitest";
import { ApiRig, CONTROL, ROOT, sliver, spec } from "./rig.ts";

describe("the console of a sliver", () => {
  test("is read by root and the launcher, by no sliver and no controller, and is null for what is not there", async () => {
    const rig = new ApiRig();
    await rig.start();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada"), spec("bob")])]);
    await rig.settle();
    for (const caller of [ROOT, CONTROL])
      expect(await rig.json(caller, "Console", ["ada"])).toMatch(/^create 1:\d+\n/);
    for (const name of ["ada", "bob", "eve"])
      for (const caller of [sliver("ada", 1), { ...sliver("ada", 1), role: "controller" as const }])
        await expect(rig.json(caller, "Console", [name])).rejects.toMatchObject({ code: 108 });
    for (const name of ["eve", "../ada", 7, null, ["ada"]])
      expect(await rig.json(CONTROL, "Console", [name]), String(name)).toBe(null);
  });

  test("is refused with a reason where slivers have no console", async () => {
    const rig = new ApiRig();
    await rig.start();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")])]);
    await rig.settle();
    Object.assign(rig.machine, { console: undefined });
    await expect(rig.json(CONTROL, "Console", ["ada"])).rejects.toThrow(
      "slivers of back end memory have no console",
    );
  });
});
