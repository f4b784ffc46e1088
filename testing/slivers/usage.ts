import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { sliverProcesses } from "./host-state.ts";

const GROUPS = "nodeyard-slivers";

export interface Memory {
  /** KiB: each page divided by those who map it; LXC's process for the sliver counted in. */
  readonly pss: number;
  /** KiB that the kernel counts for the sliver's group: its pages, files that it read first, and what the kernel keeps for it. */
  readonly group: number;
}

/** Of each sliver's group, by its name. */
export function memoryOfSlivers(): Map<string, Memory> {
  const parent = groupOf("memory");
  const names = readdirSync(parent, { withFileTypes: true }).filter((one) => one.isDirectory());
  return new Map(names.map(({ name }) => [name, memoryOf(join(parent, name))]));
}

function memoryOf(group: string): Memory {
  const pids = ["payload", "monitor"].flatMap((part) => processes(join(group, part)));
  const pss = pids.reduce((sum, pid) => sum + pssOf(pid), 0);
  const file = ["memory.usage_in_bytes", "memory.current"].find((name) => existsSync(join(group, name)))!;
  return { pss, group: Number(readFileSync(join(group, file), "utf8")) / 1024 };
}

/** KiB. */
export function pssOf(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  return Number(/^Pss:\s+(\d+) kB/m.exec(text)?.[1] ?? 0);
}

/** KiB that programs could have without swapping. */
export function memoryAvailable(): number {
  return Number(/^MemAvailable:\s+(\d+)/m.exec(readFileSync("/proc/meminfo", "utf8"))![1]);
}

/** Seconds of CPU that all slivers have used since they were made. */
export function cpuOfSlivers(): number {
  const parent = groupOf("cpuacct");
  if (existsSync(join(parent, "cpuacct.usage")))
    return Number(readFileSync(join(parent, "cpuacct.usage"), "utf8")) / 1e9;
  return Number(/usage_usec (\d+)/.exec(readFileSync(join(parent, "cpu.stat"), "utf8"))![1]) / 1e6;
}

/** Seconds of CPU of one process and of the programs that it has run, in Linux's ticks of 10 ms. */
export function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) / 100;
}

/** What slivers use on this machine now; nothing if there are none. */
export function traces(pool: string): string[] {
  const found = (folder: string, what: RegExp) =>
    existsSync(folder)
      ? readdirSync(folder)
          .filter((name) => what.test(name))
          .map((name) => join(folder, name))
      : [];
  return [
    ...found("/sys/class/net", /^ny-[vpu]/),
    ...found(join(pool, "slivers"), /./),
    ...readdirSync("/sys/fs/cgroup").flatMap((name) =>
      found(join("/sys/fs/cgroup", name), new RegExp(`^${GROUPS}$`)),
    ),
    ...found("/sys/fs/cgroup", new RegExp(`^${GROUPS}$`)),
    ...sliverProcesses().map((line) => `process ${line}`),
  ];
}

function groupOf(controller: string): string {
  const v1 = join("/sys/fs/cgroup", controller, GROUPS);
  return existsSync(v1) ? v1 : join("/sys/fs/cgroup", GROUPS);
}

function processes(group: string): number[] {
  const file = join(group, "cgroup.procs");
  if (!existsSync(file)) return [];
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map(Number);
}
