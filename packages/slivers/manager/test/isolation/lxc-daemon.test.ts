import { readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DocumentInput, type SliverSpecInput, signText } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patience, patient } from "../../../../../testing/patience.ts";
import { spec } from "../api/rig.ts";
import { DaemonRig } from "../daemon/rig.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf } from "./machine/slivers.ts";

describe.skipIf(whyNot() !== undefined)("sliverd with real slivers", () => {
  const daemon = new DaemonRig();
  let real: RealMachine;
  let version = 0;

  beforeAll(async () => {
    real = await realMachine();
    await daemon.prepare();
    await daemon.configure(settings());
    await daemon.start();
  });
  afterAll(async () => {
    await daemon.stop();
    await real?.stop();
  });

  const signal = () => AbortSignal.timeout(patient(60_000));
  const deliver = (...slivers: SliverSpecInput[]) => {
    const head: DocumentInput = { v: 1, node: "node-1", epoch: 1, version: ++version, issuedAt: 0, slivers };
    return daemon.launcher.deliver(signText("document", head, daemon.signer), signal());
  };
  const sliver = (name: string, more: Partial<SliverSpecInput> = {}) =>
    spec(name, { generation: 1, keys: [real.key], rspec: { disk: 65_536, memoryCap: 131_072 }, ...more });
  const phases = async () =>
    Object.fromEntries(
      (await daemon.launcher.status(signal())).slivers.map(({ name, phase }) => [name, phase]),
    );
  /** Start of the first process inside, in ticks since the machine's. */
  const life = () => real.ssh(addressOf(1), "cut -d' ' -f22 /proc/1/stat").trim();

  test("a document makes them, a killed manager finds them, and the last document leaves nothing", async () => {
    await deliver(sliver("ada"), sliver("bob", { initscript: "echo hello >/home/ny-02/said" }));
    await until(async () => Object.values(await phases()).filter((one) => one === "running").length === 2);
    const before = life();
    expect(real.ssh(addressOf(2), "id -un; cat said", "ny-02")).toBe("ny-02\nhello\n");

    await daemon.end("SIGKILL");
    expect(life()).toBe(before);
    await daemon.start();
    await until(async () => (await phases()).ada === "running");
    expect(life()).toBe(before);

    // Without its store it destroys nothing, and takes over what runs.
    await daemon.end("SIGKILL");
    await rm(join(daemon.folder, "state"), { recursive: true });
    await daemon.start();
    expect((await daemon.launcher.status(signal())).safeMode).toBe(true);
    expect(life()).toBe(before);
    await deliver(sliver("ada"));
    await until(async () => (await phases()).ada === "running");
    await until(async () => (await real.leftovers()).every((line) => !line.includes("ny-2.")));
    expect(life()).toBe(before);

    await deliver();
    await until(async () => (await real.leftovers()).length === 0);
  });

  test("a sliver becomes the one that was kept ready, with its keys and without a start; without the setting none is kept", async () => {
    await daemon.end("SIGTERM");
    await daemon.configure({ ...settings(), machine: { cpu: 4000, spares: 1 } });
    await daemon.start();
    await deliver(sliver("ada"));
    const ready = async () =>
      (await daemon.launcher.status(signal())).spares?.map(({ phase }) => phase).join() === "running";
    await until(ready);
    const bob = (script: string) => real.ssh(addressOf(2), script, "ny-02").trim();
    expect(() => bob("true")).toThrow("Permission denied");
    const asked = ticks();
    await deliver(sliver("ada"), sliver("bob", { rspec: { disk: 131_072, memoryCap: 131_072 } }));
    await until(async () => (await phases()).bob === "running");
    expect(bob("id -un")).toBe("ny-02");
    expect(Number(bob("cut -d' ' -f22 /proc/1/stat"))).toBeLessThan(asked);
    await until(ready);
    await daemon.end("SIGTERM");
    await daemon.configure(settings());
    await daemon.start();
    await deliver();
    await until(async () => (await real.leftovers()).length === 0);
  });

  /** Time since the machine's start, in the kernel's ticks. */
  function ticks(): number {
    return Number(readFileSync("/proc/uptime", "utf8").split(" ")[0]) * 100;
  }

  function settings(): object {
    const cache = join(tmpdir(), "nodeyard-image-cache");
    return {
      backEnd: "container",
      isolation: { folder: real.folder, cache, pool: { bytes: 1_500_000_000 } },
    };
  }

  async function until(check: () => Promise<boolean>): Promise<void> {
    for (let turn = 0; turn < 200 * patience(); turn++) {
      if (await check().catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`it did not happen\n${daemon.errors.join("")}`);
  }
});
