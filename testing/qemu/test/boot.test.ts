import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Machine } from "@nodeyard/driver";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireRoot } from "../../skipped.ts";
import {
  Beyond,
  Client,
  Launches,
  type QemuRig,
  qemuRig,
  reached,
  requireQemu,
  type TestImage,
  testImage,
} from "../index.ts";

const LAUNCHER = fileURLToPath(new URL("../launcher.ts", import.meta.url));
const skip = requireQemu() !== undefined;

describe.skipIf(skip)("machines that really boot", () => {
  let image: TestImage;
  let client: Client;
  beforeAll(async () => {
    image = await testImage();
    client = await Client.make();
  });
  afterAll(() => client?.close());

  const rigOf = (
    boot: Readonly<Record<string, unknown>>,
    label: Readonly<Record<string, unknown>> = {},
    raw: Readonly<Record<string, unknown>> = {},
  ) => {
    const tiny = { name: "tiny", path: image.disk, format: "raw", username: "root", ...boot };
    const keys = { "authorized-keys": [client.authorizedKey] };
    return qemuRig([tiny], { ram: 256, disk: 1, ...keys, ...label }, raw);
  };
  const inRig = async (rig: QemuRig, body: (launches: Launches) => Promise<void>) => {
    try {
      await body(await Launches.open(rig));
    } finally {
      await rig.stop();
    }
  };
  const direct = () => ({ kernel: image.kernel, initrd: image.initrd, "kernel-arguments": image.arguments });

  test("a kernel that QEMU loads: the client's key opens, the seed is the node's", async () => {
    await inRig(await rigOf(direct(), { userdata: "#cloud-config\n{a: 1}\n" }), async (launches) => {
      const machine = await launches.create("0000000001");
      const keys = await launches.hostKeys(machine);
      const say = (command: string) => client.run(machine, keys, command);
      expect(await say("hostname; cat /etc/seed /etc/user-data")).toBe(
        "np0000000001\nnocloud\n#cloud-config\n{a: 1}\n",
      );
      expect(await reached(say)).toEqual([]);
      const { signal } = new AbortController();
      const console = await launches.provider.offers?.console?.read(launches.order("0000000001").tag, {
        signal,
        externalId: null,
      });
      expect(console).toContain("nodeyard test image: np0000000001 is up");
    });
  });

  test.skipIf(requireRoot())("outbound reaches beyond this host, and not this host", async () => {
    const rig = await rigOf(direct(), {}, { network: "outbound" });
    await inRig(rig, async (launches) => {
      const machine = await launches.create("0000000003");
      const keys = await launches.hostKeys(machine);
      const say = (command: string) => client.run(machine, keys, command);
      const beyond = await Beyond.make();
      try {
        expect(await say(`nc -w 5 ${beyond.address} ${beyond.port} </dev/null`)).toBe(`${beyond.word}\n`);
        expect(await reached(say)).toEqual([]);
      } finally {
        await beyond.close();
      }
    });
  });

  // If KVM can be opened but boots nothing, a decision without a boot would leave a machine that never answers.
  test("whichever accelerator the probe chooses, the machine answers, and the next needs no probe", async () => {
    const kvm = statSync("/dev/kvm", { throwIfNoEntry: false })?.gid;
    const root = process.getuid?.() === 0;
    const who = root && kvm !== undefined ? { user: `61234:${kvm}` } : {};
    const rig = await rigOf(direct(), {}, { accelerator: "auto", "probe-timeout": 15, ...who });
    await inRig(rig, async (launches) => {
      const first = await launches.create("0000000004");
      expect(await launches.hostKeys(first)).toHaveLength(1);
      const verdicts = join(rig.folder, "accelerators");
      const known = existsSync(verdicts) ? readdirSync(verdicts) : [];
      await launches.remove("0000000004");
      expect(await launches.steps("0000000005")).not.toContain("kvm-probe");
      expect(existsSync(verdicts) ? readdirSync(verdicts) : []).toEqual(known);
    });
  });

  test("a boot sector, a seed by fw_cfg; it outlives a launcher that is killed, and the next finds it", async () => {
    const rig = await rigOf({}, { seed: "fw_cfg" });
    await inRig(rig, async (launches) => {
      const machine = await createdAndKilled(rig, "0000000002");
      const keys = await launches.hostKeys(machine);
      expect(await client.run(machine, keys, "hostname; cat /etc/seed; touch /mine")).toBe(
        "np0000000002\nfw_cfg\n",
      );
      expect(await launches.create("0000000002")).toEqual(machine);
      expect(await client.run(machine, keys, "ls /mine")).toBe("/mine\n");
      await launches.remove("0000000002");
      await expect(launches.hostKeys(machine, 1_000)).rejects.toThrow();
    });
  });
});

/** What a launcher made that was killed with its whole process group. */
async function createdAndKilled(rig: QemuRig, nodeId: string): Promise<Machine> {
  const words = [LAUNCHER, JSON.stringify(rig.text), nodeId];
  const launcher = spawn(process.execPath, words, { detached: true, stdio: ["ignore", "pipe", "inherit"] });
  const [line] = (await once(createInterface({ input: launcher.stdout }), "line")) as [string];
  process.kill(-(launcher.pid as number), "SIGKILL");
  await once(launcher, "close");
  return JSON.parse(line) as Machine;
}
