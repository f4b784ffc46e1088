import { readFile } from "node:fs/promises";

/** A process, identified also when its id is reused. */
export interface Process {
  readonly pid: number;
  /** Boot of the machine, and the tick it was started at. */
  readonly identity: string;
  readonly argv: readonly string[];
}

/** Undefined when there is no such process, or only what is left of one that has ended. */
export async function processOf(pid: number): Promise<Process | undefined> {
  const identity = await identityOf(pid);
  if (identity === undefined) return undefined;
  const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  // Arguments and start may be of two processes, when the id went from one to the next in between.
  if ((await identityOf(pid)) !== identity) return undefined;
  return { pid, identity, argv: text.split("\0").slice(0, -1) };
}

/** A process that makes something: its id alone would be another's one day. */
export interface Maker {
  readonly pid: number;
  readonly identity: string;
}

export async function thisMaker(): Promise<Maker> {
  const { pid } = process;
  return { pid, identity: (await identityOf(pid)) ?? "" };
}

export async function makerAlive({ pid, identity }: Maker): Promise<boolean> {
  return (await identityOf(pid)) === identity;
}

async function identityOf(pid: number): Promise<string | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 1) return undefined;
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (stat === undefined) return undefined;
  // The second field is the command's name, which may hold spaces and brackets (proc_pid_stat(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, threads, started] = [fields[0], Number(fields[17]), fields[19]];
  // While other threads of it live, its files and sockets are still open.
  if ((state === "Z" || state === "X") && threads <= 1) return undefined;
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  return `${boot.trim()} ${started}`;
}
