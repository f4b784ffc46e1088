import { CommandError } from "../../errors.ts";
import { type FromRunner, start } from "./runner.ts";

/** Debian packages of the programs that a sliver host runs. */
const PACKAGES = {
  "lxc-start": "lxc",
  lxcfs: "lxcfs",
  btrfs: "btrfs-progs",
  "mkfs.btrfs": "btrfs-progs",
  nft: "nftables",
  ip: "iproute2",
  tc: "iproute2",
  "ssh-keygen": "openssh-client",
  sshd: "openssh-server",
  setpriv: "util-linux",
  useradd: "passwd",
  mmdebstrap: "mmdebstrap",
  skopeo: "skopeo",
} as const;
/** A program that slivers or their images need on the machine. */
export type Program = keyof typeof PACKAGES;

/** Programs with their packages. */
export function packagesOf(programs: readonly Program[]): Readonly<Record<string, string>> {
  return Object.fromEntries(programs.map((program) => [program, PACKAGES[program]]));
}

/** How to install a missing program, by its name or path. */
export function howToInstall(program: string): string {
  const name = program.slice(program.lastIndexOf("/") + 1);
  const held: string | undefined = Object.hasOwn(PACKAGES, name) ? PACKAGES[name as Program] : undefined;
  return `${name} is not installed here${held === undefined ? "" : `: apt-get install ${held}`}`;
}

/** Options of run. */
export interface RunOptions {
  readonly signal: AbortSignal;
  /** Written to the program's standard input. */
  readonly input?: string;
  /** Replaces the default PATH. */
  readonly path?: string;
  /** Discards the output, because a process that the program leaves behind would keep the pipe open. */
  readonly leavesProcess?: true;
  /** Kills the program when this process ends, however it ends: for long work on something that is incomplete until then. */
  readonly diesWithUs?: true;
  /** Limit of the address space in bytes, for programs that work on an image, because the image determines how much they need. */
  readonly memory?: number;
  /** Called with its number when it has said the first thing. Its standard input then stays open until the signal aborts. */
  readonly onStart?: (pid: number) => void;
  /** Called with each line of standard error. */
  readonly onLine?: (line: string) => void;
}

/** Where programs of the machine are. */
export const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"] as const;
const KEPT = 65_536;

/**
 * Runs a program without a shell, in a fixed environment, and resolves with its standard output. It is killed when the signal aborts.
 * Throws CommandError, or the signal's reason.
 */
export function run(argv: readonly [string, ...string[]], options: RunOptions): Promise<string> {
  const { signal, memory } = options;
  const before = [
    ...(options.diesWithUs === true ? DIE_WITH_PARENT : []),
    ...(memory === undefined ? [] : ["prlimit", `--as=${memory}`]),
  ];
  const all = [...before, ...argv];
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    let out = "";
    let err = "";
    let partial = "";
    const kill = start(
      {
        argv: all,
        path: options.path ?? PATH,
        input: options.input,
        isOpen: options.onStart !== undefined,
        isQuiet: options.leavesProcess === true,
      },
      (message) => {
        if ("out" in message) {
          out += message.out;
          if (out.length > 16 * KEPT) kill();
          options.onStart?.(message.pid);
        } else if ("err" in message) {
          err = (err + message.err).slice(-KEPT);
          const lines = (partial + message.err).split("\n");
          partial = lines.pop()!.slice(-KEPT);
          for (const line of lines) options.onLine?.(line);
        } else {
          signal.removeEventListener("abort", kill);
          if (signal.aborted) reject(signal.reason);
          else if (message.end === 0) resolve(out);
          else reject(failure(all[0]!, argv, err, message.end));
        }
      },
    );
    signal.addEventListener("abort", kill, { once: true });
  });
}

function failure(
  program: string,
  argv: readonly string[],
  err: string,
  end: Extract<FromRunner, { readonly end: unknown }>["end"],
): CommandError {
  if (typeof end !== "object" || end === null)
    return new CommandError(`${argv.slice(0, 3).join(" ")}: ${said(err, end)}`);
  const cause = Object.assign(new Error(end.message), { code: end.code });
  const why = end.code === "ENOENT" ? howToInstall(program) : `${program} could not be run: ${end.message}`;
  return new CommandError(why, { cause });
}

function said(err: string, how: unknown): string {
  const lines = err.trim().split("\n").slice(-3).join("; ");
  return lines === "" ? `it ended with ${how}` : lines;
}
