import { readFile } from "node:fs/promises";

/** A process with an identity, because the system reuses process ids. */
export interface Process {
  readonly pid: number;
  /** Boot id of the host and start time of the process in ticks. */
  readonly identity: string;
  readonly argv: readonly string[];
}

/** The process with this id. Undefined when it does not exist or is a zombie. `argv` is empty when it cannot be read. */
export async function processOf(pid: number): Promise<Process | undefined> {
  const identity = await identityOf(pid);
  if (identity === undefined) return undefined;
  const text = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  // If the id was reused in between, the arguments belong to another process than the start time.
  if ((await identityOf(pid)) !== identity) return undefined;
  return { pid, identity, argv: text.split("\0").slice(0, -1) };
}

/** The process that makes something, with its identity, because its id will be reused. */
export interface Maker {
  readonly pid: number;
  readonly identity: string;
}

/** This process as a maker. */
export async function thisMaker(): Promise<Maker> {
  const { pid } = process;
  return { pid, identity: (await identityOf(pid)) ?? "" };
}

/** Whether a maker still runs. False after a restart of the host, whose boot id is new. */
export async function makerAlive({ pid, identity }: Maker): Promise<boolean> {
  return (await identityOf(pid)) === identity;
}

/** What tells a process from a later one with the same id; undefined when there is no such process. */
async function identityOf(pid: number): Promise<string | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 1) return undefined;
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => undefined);
  if (stat === undefined) return undefined;
  // The second field is the command's name, which may contain spaces and parentheses (proc_pid_stat(5)).
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, threads, started] = [fields[0], Number(fields[17]), fields[19]];
  // A zombie whose other threads still live has its files and sockets open.
  if ((state === "Z" || state === "X") && threads <= 1) return undefined;
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8");
  return `${boot.trim()} ${started}`;
}
