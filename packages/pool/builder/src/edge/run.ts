import { spawn, spawnSync } from "node:child_process";
import { open } from "node:fs/promises";
import { constants } from "node:os";
import type { BuildCommand } from "../runs/back-ends.ts";
import type { Running } from "../runs/disk.ts";

/** How the processes of a build are kept together, the best first. */
export type Isolation =
  /** A PID and mount namespace of its own: its end is the end of everything in it, and no mount is left. */
  | "namespaces"
  /** The same inside a user namespace, for a builder that is not root; programs that need real root fail in it. */
  | "user-namespace"
  /** A process group: a process that leaves it outlives the build until the next sweep. */
  | "group";

/** Kills the program when this process dies. The kernel sends the signal, so that this also works after kill -9. */
export const DIE_WITH_US = ["setpriv", "--pdeathsig", "KILL", "--"];
/**
 * The first process of a PID namespace ignores most signals, and has orphans to reap (pid_namespaces(7)): neither is what a
 * program expects. So it is a shell that waits for the program.
 */
const INIT = ["sh", "-c", '"$@"; exit $?', "sh"];
/** unshare(1): `--kill-child` ends all in it when unshare itself ends, and `--mount-proc` shows only processes of it. */
const PID_AND_MOUNTS = [
  "unshare",
  "--mount",
  "--pid",
  "--fork",
  "--kill-child=KILL",
  "--mount-proc",
  "--",
  ...INIT,
];

/** What is put in front of a command. */
const WRAPPERS: Readonly<Record<Isolation, readonly string[]>> = {
  namespaces: [...DIE_WITH_US, ...PID_AND_MOUNTS],
  // In this order: a process that gets capabilities, as by its own user namespace, loses the signal.
  "user-namespace": ["unshare", "--user", "--map-root-user", "--", ...DIE_WITH_US, ...PID_AND_MOUNTS],
  group: DIE_WITH_US,
};

/** The best of them that works on this host, tried once at start. Blocks for ten seconds at most for each. */
export function probeIsolation(): Isolation {
  for (const isolation of ["namespaces", "user-namespace"] as const) {
    const [program, ...args] = [...WRAPPERS[isolation], "true"];
    if (spawnSync(program!, args, { timeout: 10_000, stdio: "ignore" }).status === 0) return isolation;
  }
  return "group";
}

/**
 * Starts a program whose output is added to `log`. It has a process group of its own and dies with this process. Rejects when the
 * log cannot be opened; `ended` rejects when the program cannot be started.
 */
export async function startRun({
  argv,
  env,
  cwd,
  log,
  isolation,
}: BuildCommand & {
  readonly cwd: string;
  readonly log: string;
  readonly isolation: Isolation;
}): Promise<Running> {
  const [program, ...args] = [...WRAPPERS[isolation], ...argv];
  // To the file itself: no pipe that a forgotten child could hold open, or whose reader could die.
  await using file = await open(log, "a", 0o644);
  const child = spawn(program!, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ["ignore", file.fd, file.fd],
    detached: true,
  });
  const ended = new Promise<{ code: number }>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      resolve({ code: code ?? -(signal === null ? 1 : constants.signals[signal]) }),
    );
  });
  const kill = () => killGroup(child.pid);
  // The program has a process group of its own, so its leftovers must be killed here.
  ended.then(kill, () => {});
  return { ended, kill };
}

/** Kills the process and all that has not left its group. Undefined: it never started. Gone already: nothing. */
export function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
