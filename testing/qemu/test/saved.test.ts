import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Machine } from "@nodeyard/driver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  blankDisk,
  Client,
  Launches,
  type QemuRig,
  qemuRig,
  requireQemu,
  type TestImage,
  testImage,
} from "../index.ts";

const skip = requireQemu() !== undefined;
const SAYS = [
  "hostname",
  "cat /etc/machine-id",
  "cat /proc/sys/kernel/random/boot_id",
  "head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \\n'; echo",
  "date +%s",
  "cat /sys/firmware/qemu_fw_cfg/by_name/opt/org.nodeyard/meta-data/raw",
].join("; ");

describe.skipIf(skip)("machines that go on from a saved state", () => {
  let image: TestImage;
  let client: Client;
  beforeAll(async () => {
    image = await testImage();
    client = await Client.make();
  });
  afterAll(() => client?.close());

  const inRig = async (
    label: Readonly<Record<string, unknown>>,
    body: (rig: QemuRig, launches: Launches) => Promise<void>,
  ) => {
    const boot = { kernel: image.kernel, initrd: image.initrd, "kernel-arguments": image.arguments };
    const tiny = { name: "tiny", path: image.disk, format: "raw", username: "root", ...boot };
    const keys = { "authorized-keys": [client.authorizedKey] };
    const users = process.getuid?.() === 0 ? { users: "61300-61309" } : {};
    const rig = await qemuRig([tiny], { ram: 256, disk: 1, "saved-state": true, ...keys, ...label }, users);
    try {
      await body(rig, await Launches.open(rig));
    } finally {
      await rig.stop();
    }
  };
  const reported = async (launches: Launches, machine: Machine) => {
    const keys = await launches.hostKeys(machine);
    const [name, id, boot, random, time, ...meta] = (await client.run(machine, keys, SAYS)).split("\n");
    return { keys, name, id, boot, random, time: Number(time), meta: JSON.parse(meta.join("")) };
  };

  test("each is another: name, host key, machine id, chance, time and seed", async () => {
    await inRig({}, async (rig, launches) => {
      const [first, ...others] = ["0000000001", "0000000002", "0000000003"];
      const seen = await launches.steps(first as string);
      expect(seen).toEqual(expect.arrayContaining(["saved-state", "resume"]));
      expect(seen).not.toContain("start");
      const machines = [await launches.create(first as string)];
      machines.push(...(await Promise.all(others.map((id) => launches.create(id)))));
      const said = [];
      for (const machine of machines) said.push(await reported(launches, machine));
      for (const what of ["name", "id", "boot", "random"] as const)
        expect(new Set(said.map((one) => one[what])).size, what).toBe(3);
      expect(new Set(said.flatMap(({ keys }) => keys)).size).toBe(3);
      const now = Date.now() / 1000;
      for (const [at, { name, id, time, meta }] of said.entries()) {
        expect(name).toBe(`np000000000${at + 1}`);
        expect(meta).toMatchObject({ "local-hostname": name });
        expect(meta["instance-id"].replaceAll("-", "")).toBe(id);
        expect(Math.abs(time - now)).toBeLessThan(300);
      }
      expect(readdirSync(join(rig.folder, "saved"))).toHaveLength(1);
      expect(readdirSync(join(rig.folder, "saving"))).toEqual([]);
    });
  });

  test("what launchers left that died over it is made again, and no two have one key", async () => {
    await inRig({}, async (rig, launches) => {
      const before = await launches.hostKeys(await launches.create("0000000001"));
      const [node] = readdirSync(join(rig.folder, "nodes"));
      // It was restored, and got no identity.
      rmSync(join(rig.folder, "nodes", node as string, "up"));
      // A guest that was to be saved by a process that has ended.
      const [key] = readdirSync(join(rig.folder, "saved"));
      const guest = join(rig.folder, "saving", key as string);
      mkdirSync(join(guest, "run"), { recursive: true });
      const maker = { pid: process.pid, identity: "of an earlier boot" };
      writeFileSync(join(guest, "wanted.json"), JSON.stringify({ v: 1, uuid: "x", resources: {}, maker }));
      const later = await Launches.open(rig);
      expect(readdirSync(join(rig.folder, "saving"))).toEqual([]);
      const after = await later.hostKeys(await later.create("0000000001"));
      expect(after).toHaveLength(1);
      expect(after).not.toEqual(before);
    });
  });

  test("a state that is damaged is said, the machine boots, and the next launcher makes the state anew", async () => {
    await inRig({}, async (rig, launches) => {
      await launches.create("0000000001");
      const [key] = readdirSync(join(rig.folder, "saved"));
      const state = join(rig.folder, "saved", key as string, "state");
      const bytes = readFileSync(state);
      bytes[bytes.length >> 1]! ^= 1;
      writeFileSync(state, bytes);
      const seen = await launches.steps("0000000002");
      expect(seen).toEqual(expect.arrayContaining(["saved-state-failed", "start"]));
      expect(await launches.hostKeys(await launches.create("0000000002"))).toHaveLength(1);
      const later = await Launches.open(rig);
      expect(await later.steps("0000000003")).not.toContain("start");
      // A complete file, but not in a format that this QEMU reads.
      const foreign = Buffer.from("QEVM of another version");
      const entry = join(rig.folder, "saved", key as string, "saved.json");
      const sha256 = createHash("sha256").update(foreign).digest("hex");
      writeFileSync(state, foreign);
      writeFileSync(entry, JSON.stringify({ ...JSON.parse(readFileSync(entry, "utf8")), sha256 }));
      const last = await Launches.open(rig);
      expect(await last.steps("0000000004")).toEqual(
        expect.arrayContaining(["resume", "saved-state-failed", "start"]),
      );
      expect(readdirSync(join(rig.folder, "saved"))).toEqual([]);
    });
  });

  test("a guest that never parks is given up, its machine boots, and nothing of the attempt is left", async () => {
    const blank = { name: "blank", format: "raw" };
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-blank-"));
    const label = { ram: 16, disk: 1, "saved-state": true };
    const rig = await qemuRig([{ ...blank, path: blankDisk(folder) }], label, { "boot-timeout": 3 });
    try {
      const launches = await Launches.open(rig);
      expect(await launches.steps("0000000001")).toEqual(
        expect.arrayContaining(["saved-state-failed", "start"]),
      );
      expect(readdirSync(join(rig.folder, "saving"))).toEqual([]);
    } finally {
      await rig.stop();
      rmSync(folder, { recursive: true });
    }
  });
});
