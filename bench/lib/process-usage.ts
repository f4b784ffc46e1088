import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

let ticksPerSecond: number | undefined;

/** CPU that a process has used so far, user and system, in milliseconds (Linux, 10 ms steps). */
export function cpuMs(pid: number): number {
  ticksPerSecond ??= Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The program's name, in parentheses, may hold anything; fields 14 and 15 of the line are utime and stime.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return ((Number(fields[11]) + Number(fields[12])) * 1_000) / ticksPerSecond;
}

/** Most memory that a process has had resident so far, in MiB. */
export function peakMemoryMib(pid: number): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (line === null) throw new Error(`/proc/${pid}/status has no VmHWM`);
  return Math.round(Number(line[1]) / 102.4) / 10;
}
