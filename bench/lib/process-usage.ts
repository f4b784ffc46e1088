import { readdirSync, readFileSync } from "node:fs";

/**
 * CPU time that a process has used so far, user and system, over all its threads, in milliseconds (Linux). The kernel scheduler's own
 * accounting is exact; `/proc/PID/stat` counts in steps of 10 ms. Ended threads do not count: the launcher's live as long as it does.
 */
export function cpuMs(pid: number): number {
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`))
    ns += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]);
  return ns / 1e6;
}

/** The most resident memory that a process has had so far, in MiB. */
export function peakMemoryMib(pid: number): number {
  const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  if (line === null) throw new Error(`/proc/${pid}/status has no VmHWM`);
  return Math.round(Number(line[1]) / 102.4) / 10;
}
