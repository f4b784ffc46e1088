import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, describe, expect, test } from "vitest";
import { blankDisk, Launches, type QemuRig, qemuRig, requireQemu } from "../../../../testing/qemu/index.ts";
import { requireRoot } from "../../../../testing/skipped.ts";
import { assertIdsUnused, openNumbers } from "../src/edge/numbers.ts";

const skip = requireQemu();
const noRoot = skip ?? requireRoot();
const PLAIN = fileURLToPath(new URL("../../../../testing/qemu/plain-user.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "nodeyard-users-"));
const blank = { name: "blank", path: blankDisk(folder), format: "raw" };
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const { signal } = new AbortController();
const inRig = async (raw: object, body: (launches: Launches, rig: QemuRig) => Promise<void>) => {
  const rig = await qemuRig([blank], { ram: 16, disk: 1 }, raw as Readonly<Record<string, unknown>>);
  try {
    await body(await Launches.open(rig), rig);
  } finally {
    await rig.stop();
  }
};
const at = (rig: QemuRig, nodeId: string, ...path: readonly string[]) => {
  const name = readdirSync(join(rig.folder, "nodes")).find((one) => one.endsWith(nodeId)) as string;
  return join(rig.folder, "nodes", name, ...path);
};
const pidOf = (rig: QemuRig, nodeId: string) =>
  Number(readFileSync(at(rig, nodeId, "run", "qemu.pid"), "utf8"));

describe.skipIf(noRoot)("a user for each machine", () => {
  test("runs it, reads nothing of another's, and is given back", async () => {
    await inRig({ users: "61300-61301" }, async (launches, rig) => {
      for (const id of ["0000000001", "0000000002"]) await launches.create(id);
      const [one, two] = ["0000000001", "0000000002"].map((id) => statSync(`/proc/${pidOf(rig, id)}`).uid);
      expect([one, two].sort()).toEqual([61300, 61301]);
      const groups = readFileSync(`/proc/${pidOf(rig, "0000000001")}/status`, "utf8");
      expect(groups).toMatch(new RegExp(`^Gid:\t${one}\t`, "m"));
      const reads = (uid: number | undefined, path: string) =>
        spawnSync("setpriv", [
          ...["--reuid", `${uid}`, "--regid", `${uid}`, "--groups", "61234", "--", "cat", path],
        ]).status === 0;
      for (const path of ["run/disk.qcow2", "seed/user-data"]) {
        expect(reads(one, at(rig, "0000000001", path)), path).toBe(true);
        expect(reads(two, at(rig, "0000000001", path)), path).toBe(false);
      }
      expect(reads(two, at(rig, "0000000001", "base"))).toBe(true);
      await expect(launches.create("0000000003")).rejects.toMatchObject({ kind: "quota" });
      expect(await launches.provider.quota(signal)).toMatchObject({ instances: 2 });
      await launches.remove("0000000001");
      await launches.create("0000000003");
      expect(statSync(`/proc/${pidOf(rig, "0000000003")}`).uid).toBe(one);
    });
  });

  test("must be unused; a number that a launcher took before it died is reused when it is needed", async () => {
    const all = join(folder, "taken");
    await expect(assertIdsUnused({ first: 0, last: 10 })).rejects.toThrow(/which is root/);
    const users = await openNumbers(all, { first: 61300, last: 61301 }, "users");
    const nobody = async () => false;
    const now = systemClock.now();
    expect(await users.take("a", nobody, now)).toBe(61300);
    expect(await users.take("b", nobody, now)).toBe(61301);
    await expect(users.take("c", nobody, now)).rejects.toMatchObject({ kind: "quota" });
    expect(await users.take("c", async (machine) => machine === "a", now + 3_600_000)).toBe(61301);
    await users.free(61301, "b");
    await expect(users.take("d", async () => true, now + 3_600_000)).rejects.toMatchObject({ kind: "quota" });
  });
});

describe.skipIf(skip)("a machine whose process is gone", () => {
  test("is listed as ended, still counted, and removed like any other", async () => {
    await inRig({}, async (launches, rig) => {
      for (const id of ["0000000001", "0000000002"]) await launches.create(id);
      process.kill(pidOf(rig, "0000000001"), "SIGKILL");
      const listed = async () =>
        Object.fromEntries(
          (await launches.provider.list(signal)).map(({ tag, ended }) => [tag?.nodeId, ended]),
        );
      await expect.poll(listed).toEqual({ "0000000001": true, "0000000002": undefined });
      const [resource] = (await launches.provider.list(signal)).filter(({ ended }) => ended);
      expect(resource?.resources).toMatchObject({ instances: 1 });
      await launches.remove("0000000001");
      expect(await listed()).toEqual({ "0000000002": undefined });
    });
  });
});

describe.skipIf(noRoot)("a launcher that is not root", () => {
  test("makes and removes machines as itself, and is refused what needs root by name", () => {
    const home = mkdtempSync(join(tmpdir(), "nodeyard-plain-"));
    chownSync(home, 61234, 61234);
    try {
      const image = { ...blank, path: join(home, "blank.raw") };
      execFileSync("cp", [blank.path, image.path]);
      const text = { folder: join(home, "vms"), accelerator: "tcg", "cloud-images": [image] };
      const said = execFileSync(process.execPath, [PLAIN, JSON.stringify(text)], {
        uid: 61234,
        gid: 61234,
        env: { PATH: process.env.PATH, HOME: home, TMPDIR: home },
        encoding: "utf8",
      });
      expect(JSON.parse(said)).toEqual({
        uid: 61234,
        listed: 1,
        left: 0,
        outbound: expect.stringMatching(/^configuration: .*outbound needs root/),
        user: expect.stringMatching(/^configuration: .*only root can run QEMU as/),
        users: expect.stringMatching(/^configuration: .*users needs root/),
      });
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
});
