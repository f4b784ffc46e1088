import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";
import { bringUp, configsOf } from "./machine/slivers.ts";

/** Where the machine limits what root itself may raise, podman's own defaults fail. */
const ULIMITS = "--ulimit nofile=1024:1024 --ulimit nproc=100:100";
const PODMAN = "podman --runtime runc --cgroup-manager=cgroupfs";

describe.skipIf(whyNot() !== undefined)("containers in a sliver", { timeout: 300_000 }, () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  }, 1_800_000);
  afterAll(() => real?.stop(), 60_000);

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
        timeout: 60_000,
      });
      return { status, said: `${stdout}${stderr}`.trim() };
    };
    const image = `mkdir -p /b/bin && cp /usr/bin/busybox /b/bin/ && ln -s busybox /b/bin/sh && tar -C /b -cf /b.tar . &&
      mkdir -p /etc/containers && echo '{"default":[{"type":"insecureAcceptAnything"}]}' > /etc/containers/policy.json &&
      ${PODMAN} import /b.tar mini 2>&1 | tail -1`;
    expect(asRoot(1, image)).toMatchObject({ status: 0, said: expect.stringMatching(/^sha256:/) });
    const run = `${PODMAN} run --rm ${ULIMITS} --network=host mini /bin/sh -c`;
    expect(asRoot(1, `${run} 'echo from the image'`)).toEqual({ status: 0, said: "from the image" });
    // What a container takes is the sliver's.
    expect(asRoot(1, `${run} 'exec tail /dev/zero'`).status).toBe(137);
    expect(asRoot(2, "unshare --user true").status).not.toBe(0);
    expect(asRoot(2, "unshare --mount true").status).not.toBe(0);
  });
});
