import { readFileSync } from "node:fs";

/**
 * Distinguishes a process from every other that ever has its id: the boot of the machine and the tick of its start. Undefined if there is
 * no such process, or if it has ended but is still listed.
 */
export function identityOf(pid: number): string | undefined {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    return undefined;
  }
  // The second field is the command's name, which may hold spaces and brackets (proc_pid_stat(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, threads, started] = [fields[0], Number(fields[17]), fields[19]];
  // While other threads of it live, its files and sockets are still open.
  if ((state === "Z" || state === "X") && threads <= 1) return undefined;
  return `${bootId()} ${started}`;
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}
