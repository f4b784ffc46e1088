import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lockFolder } from "../../src/daemon/edge/lock.ts";
import { DaemonRig } from "./rig.ts";

const NO_DATABASE = "what a broken disk left ".repeat(200);

describe("the lock of a state folder", () => {
  const rig = new DaemonRig();
  beforeAll(() => rig.prepare());
  afterAll(() => rig.stop());

  test("damaged, it is held all the same by who holds it, and keeps nobody out when nobody does", async () => {
    await rig.start();
    writeFileSync(join(rig.folder, "state", "lock.sqlite"), NO_DATABASE);
    await expect(rig.start()).rejects.toThrow(/exit 1: error another sliverd works in/);
    expect(await rig.end("SIGKILL")).toBe("SIGKILL");
    await rig.start();
    await expect(rig.start()).rejects.toThrow(/exit 1: error another sliverd works in/);
    expect(await rig.end("SIGTERM")).toBe(0);
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
