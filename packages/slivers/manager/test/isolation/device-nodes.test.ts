import { existsSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { deviceNumber } from "../../src/isolation/edge/device-number.ts";
import { makeNodes } from "../../src/isolation/lxc/edge/device-nodes.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";

const { signal } = new AbortController();
const names = namesOf(7, "10.213");

describe.skipIf(requireRoot())("nodes of a sliver's devices", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-nodes-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("are the machine's devices, and belong to the login of the sliver alone", async () => {
    const dev = join(folder, "dev");
    const nodes = await makeNodes(dev, ["/dev/zero /dev/null", "/dev/full"], names, signal);
    expect(nodes.map(({ to, number }) => `${to} ${number}`)).toEqual([
      "dev/zero c 1:5",
      "dev/null c 1:3",
      "dev/full c 1:7",
    ]);
    const info = statSync(nodes[0]!.from);
    expect([info.isCharacterDevice(), deviceNumber(info.rdev)]).toEqual([true, [1, 5]]);
    expect([info.mode & 0o777, info.uid, info.gid]).toEqual([0o660, names.uid, names.uid]);
    // A later start has what it is given then.
    await makeNodes(dev, ["/dev/full"], names, signal);
    expect(readdirSync(dev)).toEqual(["0"]);
    await makeNodes(dev, [], names, signal);
    expect(existsSync(dev)).toBe(false);
  });

  test("of what is not there, or is no device, are errors that say what to do", async () => {
    const make = (path: string) => makeNodes(join(folder, "dev"), [path], names, signal);
    await expect(make("/dev/nodeyard-not-there")).rejects.toThrow(
      "connect it, or take it out of machine.devices",
    );
    await expect(make("/etc/hostname")).rejects.toThrow(
      "/etc/hostname of machine.devices in sliverd.json is no device",
    );
  });
});
