import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import type { LxcBackEnd } from "../../src/isolation/lxc/edge/lxc-back-end.ts";
import { besideNeighbour } from "./machine/beside.ts";
import { WEIGHT } from "./machine/neighbours.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf, inSliver } from "./machine/slivers.ts";

/** Prints each mount that is read-only and that root inside could make writable. */
const REMOUNT_ALL = `while read -r _ _ _ _ where options _; do
  case $where:$options in /proc/sys*|/sys*|/dev/.lxc*) ;; *:ro*) mount -o remount,bind,rw "$where" 2>/dev/null && echo "$where";; esac
done </proc/self/mountinfo; echo done`;

/** What it would do in a folder of settings that it could write to. */
const ATTACKS = {
  "fills the machine's disk": "dd if=/dev/zero of=/etc/nodeyard/fill bs=1M count=20",
  "puts a folder where its end removes a file":
    "rm -f /etc/nodeyard/authorized_keys; mkdir -p /etc/nodeyard/authorized_keys/x",
  "puts FIFOs where the manager reads":
    "cd /etc/nodeyard; for f in authorized_keys sshd_config init initscript; do rm -rf $f; mkfifo $f; done",
} as const;

describe.skipIf(whyNot() !== undefined)("folders that a hostile root sees", () => {
  let real: RealMachine;
  let backEnd: LxcBackEnd;
  const cache = mkdtempSync(join(tmpdir(), "nodeyard-cache-"));
  beforeAll(async () => {
    real = await realMachine({ weight: WEIGHT, caches: { shared: cache, inner: join(cache, "inner") } });
    backEnd = real.backEnd("account");
    chmodSync(cache, 0o755);
    for (const name of ["drop", "inner"]) {
      mkdirSync(join(cache, name));
      chmodSync(join(cache, name), 0o1777);
    }
  });
  afterEach(async () => {
    await real.clear();
    expect(await real.leftovers()).toEqual([]);
  });
  afterAll(async () => {
    await real?.stop();
    rmSync(cache, { recursive: true });
  });

  test("none of them becomes writable, and none is written to", async () => {
    const [config] = configsOf(real.key, { 1: {} });
    await bringUp(backEnd, [{ ...config!, nesting: true, caches: ["shared", "inner"] }]);
    expect(
      await inSliver(
        real,
        1,
        "ls -d /cache/shared/drop /cache/inner; mount -t tmpfs x /tmp && echo mounts",
        "root",
      ),
    ).toBe("/cache/inner\n/cache/shared/drop\nmounts");
    expect(await inSliver(real, 1, REMOUNT_ALL, "root")).toBe("done");
    const other =
      "mkdir -p /run/o && mount --bind /cache/shared /run/o && mount -o remount,bind,rw /run/o && echo through";
    expect(await inSliver(real, 1, other, "root")).not.toContain("through");
    await inSliver(real, 1, "touch /cache/shared/drop/x /cache/inner/x /run/nodeyard/x", "root");
    expect([...readdirSync(join(cache, "drop")), ...readdirSync(join(cache, "inner"))]).toEqual([]);
  });

  test.each(Object.entries(ATTACKS))(
    "root inside that %s changes nothing there and ends as others do",
    async (_, script) => {
      const config = { ...configsOf(real.key, { 1: {} })[0]!, nesting: true };
      const etc = join(real.folder, "slivers/ny-1.1/etc");
      const listed = () => execFileSync("ls", ["-lR", etc], { encoding: "utf8" });
      const attack = async () => {
        const before = listed();
        await inSliver(real, 1, `mount -o remount,bind,rw /etc/nodeyard; ${script}`, "root");
        expect(listed()).toBe(before);
        await backEnd.configure(config, AbortSignal.timeout(patient(20_000)));
      };
      await besideNeighbour(real, backEnd, { config, attack });
    },
  );
});
