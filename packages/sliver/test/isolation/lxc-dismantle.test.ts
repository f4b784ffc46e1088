import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DocumentInput, signText } from "@nodeyard/sliver-protocol";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { difference, hostState } from "../../../../testing/slivers/index.ts";
import { spec } from "../api/rig.ts";
import { DaemonRig } from "../daemon/rig.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";

const SLIVERD = join(import.meta.dirname, "../../src/bin/sliverd.ts");

describe.skipIf(whyNot() !== undefined)("a machine that is to be as before", { timeout: 180_000 }, () => {
  const daemon = new DaemonRig();
  /** For the one machine that tests take turns at, and for a key. */
  let real: RealMachine;
  let folder: string;
  beforeAll(async () => {
    real = await realMachine();
    folder = mkdtempSync(join(tmpdir(), "nodeyard-dismantle-"));
    await daemon.prepare();
  }, 1_800_000);
  afterAll(async () => {
    await daemon.end("SIGKILL");
    const pool = join(folder, "pool");
    if (existsSync(pool)) sliverd("--dismantle");
    await daemon.stop();
    rmSync(folder, { recursive: true, force: true });
    await real?.stop();
  }, 120_000);

  const signal = () => AbortSignal.timeout(60_000);
  const sliverd = (...words: string[]) => {
    const args = ["--disable-warning=ExperimentalWarning", SLIVERD, ...words];
    const config = ["--config", join(daemon.folder, "config.json")];
    const { status, stdout, stderr } = spawnSync(process.execPath, [...args, ...config], {
      encoding: "utf8",
    });
    return { status, stdout, stderr };
  };
  const phases = async () => (await daemon.launcher.status(signal())).slivers.map(({ phase }) => phase);

  test("says what it would take, takes it, and leaves what is somebody else's", async () => {
    await daemon.configure({
      backEnd: "account",
      isolation: { folder, pool: { bytes: 300_000_000 } },
    });
    const before = hostState(folder);
    writeFileSync(join(folder, "theirs"), "not sliverd's");
    mkdirSync(join(daemon.folder, "state"), { mode: 0o700 });
    writeFileSync(join(daemon.folder, "state", "theirs"), "not sliverd's");
    await daemon.start();
    const slivers = ["ada", "bob"].map((name) =>
      spec(name, { generation: 1, keys: [real.key], rspec: { disk: 65_536, memoryCap: 131_072 } }),
    );
    const head: DocumentInput = { v: 1, node: "node-1", epoch: 1, version: 1, issuedAt: 0, slivers };
    await daemon.launcher.deliver(signText("document", head, daemon.signer), signal());
    await until(async () => {
      const all = await phases();
      return all.length === 2 && all.every((one) => one === "running");
    });

    // Under a manager that would make everything again it does nothing.
    const refused = sliverd("--dismantle");
    expect(refused).toMatchObject({ status: 1, stdout: "" });
    expect(refused.stderr).toContain("another sliverd works in");
    expect(await phases()).toEqual(["running", "running"]);
    // Its slivers outlive it, however it ends.
    await daemon.end("SIGKILL");

    const running = hostState(folder);
    const dry = sliverd("--dismantle", "--dry-run", "--json");
    expect(dry.status).toBe(0);
    const { v, done, remove } = JSON.parse(dry.stdout) as {
      v: number;
      done: boolean;
      remove: { kind: string; name: string }[];
    };
    expect([v, done]).toEqual([1, false]);
    const listed = remove.map(({ kind, name }) => `${kind} ${name}`);
    expect(listed).toEqual(
      expect.arrayContaining([
        "sliver ny-1.1",
        "sliver ny-2.2",
        "rules inet nodeyard-slivers",
        "interface ny-v1",
        "interface ny-v2",
        "interface ny-up",
        `mount ${join(folder, "pool")}`,
        `file ${join(folder, "pool.img")}`,
        `file ${join(daemon.folder, "state", "audit.log")}`,
      ]),
    );
    expect(listed.filter((line) => /theirs/.test(line))).toEqual([]);
    expect(listed.some((line) => line.startsWith("group /sys/fs/cgroup"))).toBe(true);
    expect(difference(running, hostState(folder))).toEqual([]);

    const all = sliverd("--dismantle");
    expect(all.stderr).not.toMatch(/^error/m);
    expect(all.status).toBe(0);
    expect(all.stdout).toContain("removed sliver ny-1.1");
    expect(difference(before, hostState(folder))).toEqual([]);
    expect(readdirSync(folder)).toEqual(["theirs"]);
    expect(readdirSync(join(daemon.folder, "state"))).toEqual(["theirs"]);
    for (const name of ["run", "keys"]) expect(existsSync(join(daemon.folder, name)), name).toBe(false);

    const again = sliverd("--dismantle", "--json");
    expect(again.status).toBe(0);
    expect(JSON.parse(again.stdout)).toMatchObject({ remove: [] });
  });

  test("is called wrongly", () => {
    for (const words of [["--dry-run"], ["--json"], ["--dismantle", "--force"]])
      expect(sliverd(...words).status, words.join(" ")).toBe(2);
  });

  async function until(check: () => Promise<boolean>): Promise<void> {
    for (let turn = 0; turn < 200; turn++) {
      if (await check().catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`it did not happen\n${daemon.errors.join("")}`);
  }
});
