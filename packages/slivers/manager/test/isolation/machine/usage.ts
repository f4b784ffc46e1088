import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const GROUPS = "nodeyard-slivers";

/** A sliver's group with the CPU controller, in whichever version of control groups. */
export function cpuGroup(mark: string): string {
  const v1 = "/sys/fs/cgroup/cpu";
  return join(existsSync(v1) ? v1 : "/sys/fs/cgroup", GROUPS, mark);
}

/** Nanoseconds of CPU that it has used. */
export function cpuTime(mark: string): number {
  const v1 = join("/sys/fs/cgroup/cpuacct", GROUPS, mark, "cpuacct.usage");
  if (existsSync(v1)) return Number(readFileSync(v1, "utf8"));
  return Number(/usage_usec (\d+)/.exec(readFileSync(join(cpuGroup(mark), "cpu.stat"), "utf8"))![1]) * 1000;
}

/** What the kernel divides CPU by. */
export function cpuWeight(mark: string): number {
  const [v1, v2] = ["cpu.shares", "cpu.weight"].map((name) => join(cpuGroup(mark), name));
  return Number(readFileSync(existsSync(v1!) ? v1! : v2!, "utf8"));
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
