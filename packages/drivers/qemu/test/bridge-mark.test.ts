import { expect, test } from "vitest";
import { bridgeMark, markedFolder } from "../src/machine/bridge.ts";

test("a bridge's mark names its folder, and only a mark of ours does", () => {
  for (const folder of ["/var/lib/nodeyard/qemu", "/srv/with space", "/ü"])
    expect(markedFolder(bridgeMark(folder)!)).toBe(folder);
  for (const other of ["", "nodeyard-qemu", "nodeyard-qemu relative", "uplink of somebody", "/srv"])
    expect(markedFolder(other)).toBeUndefined();
});

test("a path that is too long for an alias is not cut: a cut one would name another folder", () => {
  expect(bridgeMark(`/${"a".repeat(240)}`)).toHaveLength(255);
  expect(bridgeMark(`/${"a".repeat(241)}`)).toBeUndefined();
  expect(bridgeMark(`/${"ü".repeat(121)}`)).toBeUndefined();
});
