import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { addressOf, bringUp, configsOf } from "./machine/slivers.ts";

const { signal } = new AbortController();
const FOLDER = `/dev/nodeyard-test-${process.pid}`;

describe.skipIf(whyNot() !== undefined)("devices of a sliver", { timeout: 300_000 }, () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
    mkdirSync(FOLDER);
    // Of a kind that each kernel has and no sliver: /dev/kmsg's neighbours are used by none. 1:3 discards, 1:5 gives zeros.
    execFileSync("mknod", ["-m", "600", `${FOLDER}/board`, "c", "1", "5"]);
    execFileSync("mknod", ["-m", "600", `${FOLDER}/serial`, "c", "1", "3"]);
  }, 1_800_000);
  afterAll(async () => {
    await real?.stop();
    rmSync(FOLDER, { recursive: true, force: true });
  }, 60_000);

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
});
