import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DocumentInput, signText } from "@nodeyard/sliver-protocol";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patience, patient } from "../../../../../testing/patience.ts";
import { difference, hostState } from "../../../../../testing/slivers/index.ts";
import { spec } from "../api/rig.ts";
import { DaemonRig } from "../daemon/rig.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { startWorld, WORLD_DEVICE, type World } from "./machine/world.ts";

const SLIVERD = join(import.meta.dirname, "../../src/bin/sliverd.ts");
const ROUTE = ["blackhole", "10.213.0.0/16", "metric", "65535"];

describe.skipIf(whyNot() !== undefined)("a machine that is to be as before", () => {
  const daemon = new DaemonRig();
  /** For the one machine that tests take turns at, and for a key. */
  let real: RealMachine;
  let world: World;
  let folder: string;
  beforeAll(async () => {
    real = await realMachine();
    world = await startWorld();
    folder = mkdtempSync(join(tmpdir(), "nodeyard-dismantle-"));
    await daemon.prepare();
  });
  afterAll(async () => {
    await daemon.stop();
    rmSync(folder, { recursive: true, force: true });
    world?.stop();
    await real?.stop();
  });

  // Also of a test that failed half way.
  afterEach(async () => {
    await daemon.end("SIGKILL");
    await daemon.configure({ backEnd: "account", isolation: { folder, pool: { bytes: 300_000_000 } } });
    const { status, stderr } = sliverd("--dismantle");
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder);
    rmSync(join(daemon.folder, "state"), { recursive: true, force: true });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  });

  const signal = () => AbortSignal.timeout(patient(60_000));
  const sliverd = (...words: string[]) => through([], ...words);
  const through = (below: readonly string[], ...words: string[]) => {
    const program = [...below, process.execPath, "--disable-warning=ExperimentalWarning", SLIVERD];
    const all = [...program, ...words, "--config", join(daemon.folder, "config.json")];
    const { status, stdout, stderr } = spawnSync(all[0]!, all.slice(1), { encoding: "utf8" });
    return { status, stdout, stderr };
  };
  const phases = async () => (await daemon.launcher.status(signal())).slivers.map(({ phase }) => phase);

  test("says what it would remove, removes it, and leaves what belongs to others", async () => {
    const isolation = { folder, pool: { bytes: 300_000_000 }, inbound: { device: WORLD_DEVICE } };
    await daemon.configure({ backEnd: "account", isolation });
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
    expect(refused.stderr).toContain("another sliverd runs in");
    expect(await phases()).toEqual(["running", "running"]);
    // Nor with a state folder of its own: the machine is one.
    await daemon.configure({ backEnd: "account", isolation, stateFolder: join(daemon.folder, "other") });
    for (const words of [[], ["--dismantle"]])
      expect(sliverd(...words)).toMatchObject({
        status: 1,
        stderr: expect.stringContaining("another sliverd runs on this machine"),
      });
    await daemon.configure({ backEnd: "account", isolation });
    rmSync(join(daemon.folder, "other"), { recursive: true });
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
        `route ${ROUTE.join(" ")}`,
        `mount ${join(folder, "pool")}`,
        `file ${join(folder, "pool.img")}`,
        `file ${join(daemon.folder, "state", "audit.log")}`,
      ]),
    );
    expect(listed.filter((line) => /theirs/.test(line))).toEqual([]);
    expect(listed.some((line) => line.startsWith("group /sys/fs/cgroup"))).toBe(true);
    expect(difference(running, hostState(folder))).toEqual([]);

    // Slivers go by what they were made with: a daemon refuses this change, and names this way out.
    await daemon.configure({ backEnd: "account", isolation: { ...isolation, network: "10.99" } });
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

  test("where nothing was made it writes nothing, also on a machine without a name", async () => {
    await daemon.configure({ node: undefined, backEnd: "account", isolation: { folder } });
    for (const words of [["--dry-run"], []]) {
      const { status, stdout, stderr } = sliverd("--dismantle", "--json", ...words);
      expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
      expect(JSON.parse(stdout)).toMatchObject({ remove: [] });
      expect(readdirSync(daemon.folder)).toEqual(["config.json"]);
    }
  });

  test("a machine that can make no sliver is rid of what was begun, whatever is damaged", async () => {
    const before = hostState(folder);
    const bytes = Number.MAX_SAFE_INTEGER;
    await daemon.configure({ node: undefined, backEnd: "account", isolation: { folder, pool: { bytes } } });
    await daemon.start();
    await until(async () => daemon.errors.join("").includes(`the pool needs ${bytes} bytes in ${folder}`));
    expect(existsSync(join(folder, "pool.img.new"))).toBe(false);
    expect(await daemon.end("SIGTERM")).toBe(0);
    const state = join(daemon.folder, "state");
    expect(readdirSync(state)).toContain("node-id");
    for (const name of ["node-id", "lock.sqlite"]) writeFileSync(join(state, name), "x".repeat(4096));
    for (const name of ["pool.img", "pool.img.new"]) writeFileSync(join(folder, name), "no file system");
    // As a program leaves it that a killed manager had started, and that went on beside the removal of the rest.
    execFileSync("ip", ["route", "add", ...ROUTE]);

    // As where the package was removed.
    const hidden = 'mount --bind /dev/null "$(command -v lxc-start)" && exec "$@"';
    const all = through(["unshare", "--mount", "sh", "-c", hidden, "sh"], "--dismantle");
    expect(all).toMatchObject({ status: 0, stderr: "" });
    for (const name of ["pool.img", "pool.img.new"])
      expect(all.stdout).toContain(`removed file ${join(folder, name)}`);
    for (const line of [`file ${join(state, "node-id")}`, `route ${ROUTE.join(" ")}`])
      expect(all.stdout).toContain(`removed ${line}`);
    expect(difference(before, hostState(folder))).toEqual([]);
    expect(readdirSync(daemon.folder)).toEqual(["config.json"]);
  });

  test("is called wrongly", () => {
    for (const words of [["--dry-run"], ["--json"], ["--dismantle", "--force"]])
      expect(sliverd(...words).status, words.join(" ")).toBe(2);
  });

  async function until(check: () => Promise<boolean>): Promise<void> {
    for (let turn = 0; turn < 200 * patience(); turn++) {
      if (await check().catch(() => false)) return;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    throw new Error(`it did not happen\n${daemon.errors.join("")}`);
  }
});
