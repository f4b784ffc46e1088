import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { MemoryBackEnd } from "../../../../../testing/slivers/memory-back-end.ts";
import { parseConfig } from "../../src/daemon/config.ts";
import { lockFolder } from "../../src/daemon/edge/lock.ts";
import { startDaemon } from "../../src/daemon/edge/start.ts";
import { READER, signerOf } from "../api/rig.ts";
import { DaemonRig } from "./rig.ts";

const NO_DATABASE = "what a broken disk left ".repeat(200);

describe("the lock of a state folder", () => {
  const rig = new DaemonRig();
  beforeAll(() => rig.prepare());
  afterAll(() => rig.stop());

  test("a damaged lock file is still held by its holder, and excludes no process when it has none", async () => {
    await rig.start();
    writeFileSync(join(rig.folder, "state", "lock.sqlite"), NO_DATABASE);
    await expect(rig.start()).rejects.toThrow(/exit 1: error another sliverd runs in/);
    expect(await rig.end("SIGKILL")).toBe("SIGKILL");
    await rig.start();
    await expect(rig.start()).rejects.toThrow(/exit 1: error another sliverd runs in/);
    expect(await rig.end("SIGTERM")).toBe(0);
  });

  test.skipIf(requireRoot())("the lock of root tells other users that it is root's", async () => {
    const lock = JSON.stringify(join(import.meta.dirname, "../../src/daemon/edge/lock.ts"));
    const script = `import(${lock}).then(({ lockFolder }) => lockFolder(process.argv[1])).catch((e) => console.log(e.message))`;
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-lock-"));
    try {
      lockFolder(folder)[Symbol.dispose]();
      const { stdout } = spawnSync(process.execPath, ["-e", script, folder], {
        uid: 65_534,
        encoding: "utf8",
      });
      expect(stdout).toBe(`${folder} is user 0's, and this is user 65534; run sliverd as root\n`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("what cannot be locked is not called another sliverd", () => {
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-lock-"));
    try {
      mkdirSync(join(folder, "lock.sqlite"));
      expect(() => lockFolder(folder)).toThrow(
        /lock.sqlite cannot be locked \(.*\): remove it while no sliverd/,
      );
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("the lock of a machine", () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-machine-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** With folders of its own; `place` is where the names are that it shares. */
  const start = (name: string, place: string) => {
    const config = {
      node: name,
      backEnd: "memory",
      stateFolder: join(folder, name, "state"),
      runFolder: join(folder, name, "run"),
      keySet: { v: 1, version: 1, keys: [{ kid: "k1", x: signerOf("k1").x }] },
      capacity: { cpu: 1000, memory: 1_000_000, disk: 1_000_000 },
      control: { uid: process.getuid!() },
    };
    const make = () =>
      Object.assign(new MemoryBackEnd(process.getuid!()), { lockFolder: join(folder, place) });
    const log = { info: () => {}, error: () => {} };
    return startDaemon(parseConfig(JSON.stringify(config), "config.json"), { memory: make }, log, READER);
  };

  test("keeps a second manager from it, whatever folders that has, until the first one ends", async () => {
    const first = await start("one", "machine");
    await expect(start("two", "machine")).rejects.toThrow(
      "another sliverd runs on this machine, with a state folder of its own; stop it first",
    );
    const elsewhere = await start("three", "other-machine");
    await elsewhere.close();
    await first.close();
    const second = await start("two", "machine");
    await second.close();
  });
});
