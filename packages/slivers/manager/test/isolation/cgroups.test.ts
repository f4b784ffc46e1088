import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { describe, expect, test } from "vitest";
import { Cgroups, PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import { liftingWrites, limitWrites, readLayout, strayingGroup } from "../../src/isolation/cgroups/limits.ts";
import { sampleConfig } from "./conformance.ts";

const V1 = `30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio
34 30 0:30 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
35 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`;
const V2 = "31 30 0:27 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate";

const UNLIMITED = "every sync of the machine would wait for writes that wait at a limit";

const config = (some: object) => {
  const sample = sampleConfig(1, 1, {});
  return { ...sample, effective: { ...sample.effective, net2Day: 0, ...some } };
};
const values = (
  mountinfo: string,
  v2: readonly string[],
  some: object,
  device?: string,
  more: object = {},
  weighs = true,
  weight?: number,
) => {
  const { writes, unenforced } = limitWrites(
    { ...config(some), ...more },
    readLayout(mountinfo, () => v2),
    device === undefined ? undefined : { number: device, weighs },
    { memory: 1_000, tasks: 1_000, weight },
  );
  const named = writes.map(({ file, value, above }) => [above ? `../${file}` : file, value]);
  return { unenforced, files: Object.fromEntries(named) };
};

describe("limits in the words of the kernel", () => {
  test("v1, v2 and both: each controller where it is", () => {
    const hybrid = readLayout(V1, () => ["pids", "hugetlb"]);
    expect([...hybrid.controllers].map(([name, { version }]) => `${name} ${version}`).sort()).toEqual([
      "cpu 1",
      "io 1",
      "memory 1",
      "pids 2",
    ]);
    expect(hybrid.hierarchies).toHaveLength(5);
    expect([...readLayout(V2, () => ["cpu", "io", "memory", "pids"]).controllers.keys()].sort()).toEqual([
      "cpu",
      "io",
      "memory",
      "pids",
    ]);
  });

  test.each([
    ["4:memory:/\n3:name=systemd:/init.scope\n0::/\n", undefined],
    ["0::/init.scope\n", undefined],
    ["0::/init\n", "/init"],
    ["0::/../..\n", "/../.."],
    ["4:memory:/a:b\n0::/\n", "/a:b"],
    ["0::/docker/f00/init.scope\n", "/docker/f00/init.scope"],
  ])("where LXC makes groups, by that of process 1: %j", (text, straying) => {
    expect(strayingGroup(text)).toBe(straying);
  });

  test("v2", () => {
    const all = ["cpu", "cpuset", "io", "memory", "pids"];
    const asked = {
      memoryCap: 65_536,
      memoryGuarantee: 1024,
      pids: 9,
      ioRead: 5,
      ioWriteOps: 9,
      ioWeight: 300,
    };
    const limits = { ...config({}).limits, cpuWeight: 300, allWeight: 400, cpuCap: 250 };
    expect(values(V2, all, asked, "7:3", { limits, cores: [0, 2] })).toEqual({
      unenforced: [`ioWriteOps: ${UNLIMITED}`],
      files: {
        "cpu.weight": "300",
        "../cpu.weight": "400",
        "cpu.max": "25000 100000",
        "cpuset.cpus": "0,2",
        "memory.max": "67108864",
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "memory.min": "1048576",
        "pids.max": "9",
        "io.max": "7:3 rbps=5 riops=max",
        "io.bfq.weight": "300",
        "io.weight": "300",
      },
    });
    const none = values(V2, all, { memoryCap: 0, pids: 0 });
    expect(none.files).toMatchObject({ "memory.max": "750", "pids.max": "750", "cpu.max": "max 100000" });
  });

  test("v1 keeps the proportion of weights", () => {
    const shares = (cpuWeight: number) =>
      Number(
        values(V1, [], {}, undefined, { limits: { ...config({}).limits, cpuWeight } }).files["cpu.shares"],
      );
    expect(shares(9999) / shares(3333)).toBeCloseTo(3, 3);
    expect(shares(100)).toBe(1024);
    expect(shares(1)).toBeGreaterThanOrEqual(2);
    expect(shares(10_000)).toBeLessThanOrEqual(262_144);
  });

  test("the weight of all slivers together is what guarantees need, unless the machine's owner says one", () => {
    const limits = { ...config({}).limits, allWeight: 400 };
    const of = (weight?: number) => values(V1, [], {}, undefined, { limits }, true, weight).files;
    expect(of()["../cpu.shares"]).toBe("4096");
    expect(of(50)["../cpu.shares"]).toBe("512");
  });

  test("io in v1: operations beside bytes, and a weight between ten and a thousand", () => {
    const asked = { pids: 0, ioRead: 5, ioReadOps: 7, ioWriteOps: 9, ioWeight: 4_000 };
    expect(values(V1, [], asked, "7:3")).toMatchObject({
      unenforced: [`ioWriteOps: ${UNLIMITED}`],
      files: {
        "blkio.throttle.read_bps_device": "7:3 5",
        "blkio.throttle.read_iops_device": "7:3 7",
        "blkio.bfq.weight": "1000",
        "blkio.weight": "1000",
      },
    });
    expect(values(V1, [], { pids: 0, ioWeight: 1 }, "7:3").files["blkio.bfq.weight"]).toBe("10");
    expect(values(V1, [], { pids: 0, ioWeight: 200 }, "7:3", {}, false).unenforced).toEqual([
      "ioWeight: the kernel has no bfq, which weighs io of groups",
    ]);
    expect(values(V1, [], { pids: 0, ioWeight: 200, ioReadOps: 1 }).unenforced).toEqual([
      "ioReadOps, ioWeight: the pool is on no block device of its own",
    ]);
    expect(values(V1, [], { pids: 0 }, "7:3", {}, false).unenforced).toEqual([]);
  });

  test("each limit of io that a group has is lifted, also one that an earlier version set", async () => {
    const v1: Readonly<Record<string, string>> = {
      "blkio.throttle.write_bps_device": "7:3 1048576\n8:0 1\n",
    };
    expect(await liftingWrites(1, async (file) => v1[file])).toEqual([
      { file: "blkio.throttle.write_bps_device", value: "7:3 0" },
      { file: "blkio.throttle.write_bps_device", value: "8:0 0" },
    ]);
    expect(await liftingWrites(2, async () => "7:3 rbps=5 wbps=max riops=max wiops=max\n")).toEqual([
      { file: "io.max", value: "7:3 rbps=max riops=max wbps=max wiops=max" },
    ]);
    expect(await liftingWrites(2, async () => undefined)).toEqual([]);
  });

  test("what a machine cannot do is said, each thing once, and only when it is asked for", () => {
    expect(values(V1, [], { pids: 0 }).unenforced).toEqual([]);
    expect(values(V1, [], { pids: 0, net2Day: 1 }).unenforced).toEqual([
      "net2Day: no destinations are exempt, so all traffic counts for netDay",
    ]);
    expect(values(V1, [], { pids: 5, memoryGuarantee: 7, ioWrite: 9 }, "7:0").unenforced).toEqual([
      "memoryGuarantee: cgroup v1 protects no memory from others",
      "pids: this machine has no pids controller",
      `ioWrite: ${UNLIMITED}`,
    ]);
    expect(values(V1, ["pids"], { ioRead: 1 }).unenforced).toEqual([
      "ioRead: the pool is on no block device of its own",
    ]);
    const bare = values("", [], { memoryCap: 1, pids: 1, ioRead: 1 }, "7:0", { cores: [1] });
    expect(bare.files).toEqual({});
    expect(bare.unenforced).toHaveLength(6);
  });
});

describe("guarantees of memory, in v2", () => {
  test("are the parent's too, as a sum, and in the groups that processes are in", async () => {
    const mount = mkdtempSync(join(tmpdir(), "nodeyard-cgroups-"));
    try {
      const groups = ["", "ny-1.1", "ny-1.1/payload", "ny-2.2"].map((name) => join(mount, PARENT, name));
      for (const group of groups) {
        mkdirSync(group, { recursive: true });
        writeFileSync(join(group, "memory.min"), "0\n");
      }
      const layout = readLayout(`31 30 0:27 / ${mount} rw - cgroup2 cgroup2 rw`, () => ["memory"]);
      const cgroups = new Cgroups(layout, systemClock);
      const guarantee = (kib: number) =>
        limitWrites(config({ memoryGuarantee: kib }), layout, undefined, {
          memory: 1_000,
          tasks: 1_000,
        }).writes.filter(({ file }) => file === "memory.min");
      // A regular file keeps what is longer than what is written.
      const present = () =>
        groups
          .filter((group) => existsSync(group))
          .map((group) => Number.parseInt(readFileSync(join(group, "memory.min"), "utf8"), 10));
      await Promise.all([cgroups.apply("ny-1.1", guarantee(1024)), cgroups.apply("ny-2.2", guarantee(2048))]);
      expect(present()).toEqual([3_145_728, 1_048_576, 1_048_576, 2_097_152]);
      await cgroups.apply("ny-1.1", guarantee(3072));
      expect(present()).toEqual([5_242_880, 3_145_728, 3_145_728, 2_097_152]);
      rmSync(join(mount, PARENT, "ny-1.1"), { recursive: true });
      await cgroups.remove("ny-1.1", new AbortController().signal);
      expect(present().slice(0, 1)).toEqual([2_097_152]);
    } finally {
      rmSync(mount, { recursive: true });
    }
  });
});

describe("groups that a killed machine left", () => {
  test("go when they have no process and no sliver", async () => {
    const mounts = ["pids", "cpu"].map((name) => mkdtempSync(join(tmpdir(), `nodeyard-cgroups-${name}-`)));
    const [pids, cpu] = mounts as [string, string];
    try {
      const marks = ["ny-1.1", "ny-2.2", "ny-3.3"];
      for (const mount of mounts)
        for (const mark of marks) mkdirSync(join(mount, PARENT, mark, "payload"), { recursive: true });
      // As a process of another namespace is shown.
      writeFileSync(join(pids, PARENT, "ny-2.2", "payload", "cgroup.procs"), "0\n");
      const mountinfo = `31 30 0:27 / ${pids} rw - cgroup cgroup rw,pids\n32 30 0:28 / ${cpu} rw - cgroup cgroup rw,cpu`;
      const cgroups = new Cgroups(
        readLayout(mountinfo, () => []),
        systemClock,
      );
      await cgroups.sweep(new Set(["ny-3.3"]), new AbortController().signal);
      for (const mount of mounts)
        expect(marks.filter((mark) => existsSync(join(mount, PARENT, mark)))).toEqual(["ny-2.2", "ny-3.3"]);
    } finally {
      for (const mount of mounts) rmSync(mount, { recursive: true });
    }
  });
});
