import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { IMPORT, PODMAN, ULIMITS } from "./machine/neighbours.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf } from "./machine/slivers.ts";

describe.skipIf(whyNot() !== undefined)("containers in a sliver", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterAll(() => real?.stop());

  test("podman runs an image in one whose class is nesting, within the sliver's limits, and in no other", async () => {
    const [one, two] = configsOf(real.key, {
      1: { memoryCap: 512 * 1024, disk: 400_000, pids: 500 },
      2: {},
    });
    await bringUp(real.backEnd("account"), [{ ...one!, nesting: true }, two!]);
    const asRoot = (index: number, script: string) => {
      const folder = join(real.folder, `slivers/ny-${index}.${index}`);
      const to = ["-n", `ny-0${index}`, "-P", folder, "-f", join(folder, "lxc.conf"), "--clear-env"];
      const environment = ["-v", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "-v", "HOME=/root"];
      const words = [...to, ...environment, "--", "sh", "-c", script];
      const { status, stdout, stderr } = spawnSync("lxc-attach", words, {
        encoding: "utf8",
        timeout: patient(60_000),
      });
      return { status, said: `${stdout}${stderr}`.trim() };
    };
    expect(asRoot(1, IMPORT)).toMatchObject({ status: 0, said: expect.stringMatching(/^sha256:/) });
    expect(asRoot(1, "sed -n 's/^MemTotal: *//p' /proc/meminfo").said).toBe(`${512 * 1024} kB`);
    const run = `${PODMAN} run --rm ${ULIMITS} --network=host mini /bin/sh -c`;
    expect(asRoot(1, `${run} 'echo from the image'`)).toEqual({ status: 0, said: "from the image" });
    // A limit of its own ends in the container: its sliver is still there.
    expect(
      asRoot(1, `${run.replace(ULIMITS, `${ULIMITS} --memory 50m`)} 'tail /dev/zero; echo after'`),
    ).toEqual({
      status: 0,
      said: expect.stringContaining("after"),
    });
    // A container takes of the sliver's.
    expect(asRoot(1, `${run} 'exec tail /dev/zero'`).status).toBe(137);
    expect(asRoot(2, "unshare --user true").status).not.toBe(0);
    expect(asRoot(2, "unshare --mount true").status).not.toBe(0);
  });
});
