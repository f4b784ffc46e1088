import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf } from "./machine/slivers.ts";

const { signal } = new AbortController();
const FOLDER = `/dev/nodeyard-test-${process.pid}`;

describe.skipIf(whyNot() !== undefined)("devices and caches of a sliver", () => {
  let real: RealMachine;
  const mirror = mkdtempSync(join(tmpdir(), "nodeyard-mirror-"));
  writeFileSync(join(mirror, "pack"), "shared\n");
  // By their modes alone anybody could write.
  chmodSync(join(mirror, "pack"), 0o666);
  chmodSync(mirror, 0o777);
  beforeAll(async () => {
    real = await realMachine({ caches: { mirror, gone: `${mirror}-gone` } });
    mkdirSync(FOLDER);
    // Of a kind that each kernel has and no sliver: /dev/kmsg's neighbours are used by none. 1:3 discards, 1:5 gives zeros.
    execFileSync("mknod", ["-m", "600", `${FOLDER}/board`, "c", "1", "5"]);
    execFileSync("mknod", ["-m", "600", `${FOLDER}/serial`, "c", "1", "3"]);
  });
  afterAll(async () => {
    await real?.stop();
    for (const folder of [FOLDER, mirror]) rmSync(folder, { recursive: true, force: true });
  });

  test("are opened by its login, and are not in another sliver; one that is not there is an error", async () => {
    const backEnd = real.backEnd("account");
    const [one, two, three] = configsOf(real.key, { 1: {}, 2: {}, 3: {} });
    await bringUp(backEnd, [{ ...one!, devices: [`${FOLDER}/board ${FOLDER}/serial`] }, two!]);
    const use = `head -c 4 ${FOLDER}/board | od -An -tx1; echo x >${FOLDER}/serial && stat -c %t:%T ${FOLDER}/serial`;
    expect(
      real
        .ssh(addressOf(1), use)
        .trim()
        .split(/\s*\n\s*/),
    ).toEqual(["00 00 00 00", "1:3"]);
    expect(real.ssh(addressOf(2), `ls ${FOLDER} 2>&1 || true`, "ny-02")).toContain("No such file");
    const found = await real.backEnd("account").inspect(signal);
    expect(found.map(({ devices }) => devices)).toEqual([[`${FOLDER}/board ${FOLDER}/serial`], undefined]);
    const gone = { ...three!, devices: ["/dev/nodeyard-not-there"] };
    await expect(bringUp(backEnd, [gone])).rejects.toMatchObject({
      code: "sliver.machine",
      message: expect.stringContaining("the device /dev/nodeyard-not-there is not there"),
    });
    for (const index of [1, 2, 3]) await backEnd.destroy({ index, incarnation: index }, signal);
    expect(await real.leftovers()).toEqual([]);
  });

  test.each(["account", "container"] as const)(
    "a cache is read by all that name it and written by none: %s",
    async (kind) => {
      const backEnd = real.backEnd(kind);
      const [one, two, three, four] = configsOf(real.key, { 1: {}, 2: {}, 3: {}, 4: {} });
      await bringUp(backEnd, [{ ...one!, caches: ["mirror"] }, two!]);
      const root = kind === "account" ? "" : "sudo ";
      const tries =
        "cat /cache/mirror/pack; for file in pack new; do (echo x >/cache/mirror/$file) 2>&1; done; true";
      const seen = real.ssh(addressOf(1), `${root}sh -c '${tries}'`);
      expect(seen).toMatch(/^shared\n/);
      expect(seen.match(/Read-only file system/g)).toHaveLength(2);
      // What the owner adds is there at once.
      writeFileSync(join(mirror, "later"), "more\n");
      expect(real.ssh(addressOf(1), "cat /cache/mirror/later")).toBe("more\n");
      expect(real.ssh(addressOf(2), "ls /cache 2>&1 || true", "ny-02")).toContain("No such file");
      await expect(bringUp(backEnd, [{ ...three!, caches: ["other"] }])).rejects.toMatchObject({
        code: "sliver.machine",
        message: "there is no cache other: add it to isolation.caches in sliverd.json",
      });
      await expect(bringUp(backEnd, [{ ...four!, caches: ["gone"] }])).rejects.toMatchObject({
        message: expect.stringContaining("the cache gone of isolation.caches in sliverd.json, is no folder"),
      });
      for (const index of [1, 2, 3, 4]) await backEnd.destroy({ index, incarnation: index }, signal);
      expect(await real.leftovers()).toEqual([]);
    },
  );
});
