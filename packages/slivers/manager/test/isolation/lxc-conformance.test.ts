import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Cgroups, PARENT } from "../../src/isolation/cgroups/edge/cgroups.ts";
import { backEndConformance } from "./conformance.ts";
import { type RealMachine, realMachine, whyNot } from "./machine/rig.ts";

const skip = whyNot() !== undefined;

describe.skipIf(skip)("slivers by LXC", () => {
  let real: RealMachine;
  beforeAll(async () => {
    real = await realMachine();
  });
  afterAll(() => real?.stop());

  for (const kind of ["account", "container"] as const)
    backEndConformance(
      kind,
      async () => ({
        backEnd: real.backEnd(kind),
        key: real.key,
        restart: async () => real.backEnd(kind),
        life: async (index) => initOf(index),
        suspended: async (index) => suspended(index),
        leftovers: () => real.leftovers(),
        stop: () => real.clear(),
      }),
      { describe, test, expect },
    );

  test("groups without a process and without files, as a killed machine of its own leaves them, hold no index", async () => {
    const { layout } = await Cgroups.detect(systemClock);
    const groups = layout.hierarchies.map(({ mount }) => join(mount, PARENT, "ny-1.99/payload"));
    for (const group of groups) mkdirSync(group, { recursive: true });
    expect(await real.backEnd("account").inspect(new AbortController().signal)).toEqual([]);
    expect(groups.filter((group) => existsSync(dirname(group)))).toEqual([]);
  });
});

/** Number and start of a sliver's first process: what a restart changes. */
function initOf(index: number): string[] {
  const file = `/sys/fs/cgroup/pids/nodeyard-slivers/ny-${index}.1/payload/cgroup.procs`;
  const other = `/sys/fs/cgroup/nodeyard-slivers/ny-${index}.1/payload/cgroup.procs`;
  const pids = readFileSync(existsSync(file) ? file : other, "utf8")
    .trim()
    .split("\n");
  return pids.flatMap((pid) => {
    const [status, stat] = ["status", "stat"].map((name) => textOf(`/proc/${pid}/${name}`));
    const inner = /^NSpid:.*\t(\d+)$/m.exec(status!)?.[1];
    return inner === "1" ? [`${pid} ${stat!.split(" ")[21]}`] : [];
  });
}

function suspended(index: number): boolean {
  const group = `nodeyard-slivers/ny-${index}.1/payload`;
  const old = textOf(`/sys/fs/cgroup/freezer/${group}/freezer.state`);
  return /^FR/.test(old) || /^frozen 1$/m.test(textOf(`/sys/fs/cgroup/${group}/cgroup.events`));
}

/** Empty for a process that has ended meanwhile, as a server's who was asked does. */
function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
