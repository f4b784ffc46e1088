import { describe, expect, test } from "vitest";
import { ApiRig, CONTROL, ROOT, sliver, spec } from "./rig.ts";

describe("a sliver as an image", () => {
  test("is made and forgotten by root and the launcher only", async () => {
    const rig = new ApiRig();
    await rig.start();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada"), spec("bob")])]);
    await rig.settle();
    expect(await rig.json(ROOT, "Snapshot", ["ada", "warm"])).toBe(1);
    expect(await rig.json(CONTROL, "Snapshot", ["bob", "warm"])).toBe(1);
    expect([...rig.machine.snapshots].map(([image, { name }]) => [image, name])).toEqual([["warm", "bob"]]);
    for (const method of ["Snapshot", "ForgetSnapshot"]) {
      const params = method === "Snapshot" ? ["ada", "mine"] : ["warm"];
      await expect(rig.json(sliver("ada", 1), method, params)).rejects.toMatchObject({ code: 108 });
    }
    expect(await rig.json(ROOT, "ForgetSnapshot", ["warm"])).toBe(1);
    await expect(rig.json(ROOT, "ForgetSnapshot", ["warm"])).rejects.toThrow("there is no snapshot warm");
  });

  test("is refused for a sliver that is not there, and for names that are paths or digests", async () => {
    const rig = new ApiRig();
    await rig.start();
    await rig.json(CONTROL, "Deliver", [rig.document([spec("ada")])]);
    await rig.settle();
    await expect(rig.json(ROOT, "Snapshot", ["bob", "warm"])).rejects.toThrow(
      "a sliver that was made, not bob",
    );
    for (const image of [
      "",
      "../warm",
      "Warm",
      "a/b",
      `sha256:${"0".repeat(64)}`,
      "x".repeat(65),
      ".",
      7,
      null,
    ])
      await expect(rig.json(ROOT, "Snapshot", ["ada", image]), String(image)).rejects.toThrow(
        "an image's name",
      );
    expect(rig.machine.snapshots.size).toBe(0);
  });
});
