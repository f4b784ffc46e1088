import { spawn } from "node:child_process";
import { CommandError } from "../../errors.ts";

/** Debian packages that hold the programs which are run on a sliver host. */
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
/** A program that slivers or their image need on the machine. */
export type Program = keyof typeof PACKAGES;

/** Some programs with the package of each. */
export function packagesOf(programs: readonly Program[]): Readonly<Record<string, string>> {
  return Object.fromEntries(programs.map((program) => [program, PACKAGES[program]]));
}

/** What to do where a program is not there; by its name or path. */
export function howToInstall(program: string): string {
  const name = program.slice(program.lastIndexOf("/") + 1);
  const held: string | undefined = Object.hasOwn(PACKAGES, name) ? PACKAGES[name as Program] : undefined;
  return `${name} is not installed here${held === undefined ? "" : `: apt-get install ${held}`}`;
}

/** How a program is run. */
export interface RunOptions {
  readonly signal: AbortSignal;
  /** Written to its standard input. */
  readonly input?: string;
  /** Replaces the fixed one. */
  readonly path?: string;
  /** Its output goes nowhere: the process that it leaves behind would hold the pipe open. */
  readonly leavesProcess?: true;
  /** It is killed when this process ends, however that ends: for what works long on something that is found half made. */
  readonly diesWithUs?: true;
  /** Bytes of address space that it may have, for what works on an image: its size is the image's choice. */
  readonly memory?: number;
  /** Each line that it writes to standard error. */
  readonly onLine?: (line: string) => void;
}

const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
const DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL"] as const;
const KEPT = 65_536;

/**
 * Runs a program without a shell, in an environment of our own, and resolves to its standard output. It is killed when
 * the signal aborts. Throws CommandError, or the signal's reason.
 */
export function run(argv: readonly [string, ...string[]], options: RunOptions): Promise<string> {
  const { signal, memory } = options;
  const before = [
    ...(options.diesWithUs === true ? DIE_WITH_PARENT : []),
    ...(memory === undefined ? [] : ["prlimit", `--as=${memory}`]),
  ];
  const [program, ...args] = [...before, ...argv] as [string, ...string[]];
  return new Promise((resolve, reject) => {
    if (signal.aborted) {
      reject(signal.reason);
      return;
    }
    const pipe = options.leavesProcess === true ? "ignore" : "pipe";
    const child = spawn(program, args, {
      env: { PATH: options.path ?? PATH, LC_ALL: "C" },
      stdio: [options.input === undefined ? "ignore" : "pipe", pipe, pipe],
    });
    const kill = () => void child.kill("SIGKILL");
    signal.addEventListener("abort", kill, { once: true });
    let out = "";
    let err = "";
    let partial = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (out.length > 16 * KEPT) kill();
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      err = (err + text).slice(-KEPT);
      const lines = (partial + text).split("\n");
      partial = lines.pop()!.slice(-KEPT);
      for (const line of lines) options.onLine?.(line);
    });
    // A program that ended before it read everything says why by its exit code.
    child.stdin?.on("error", () => undefined).end(options.input);
    const end = (settle: () => void) => {
      signal.removeEventListener("abort", kill);
      if (signal.aborted) reject(signal.reason);
      else settle();
    };
    child.once("error", (cause: NodeJS.ErrnoException) => {
      const why =
        cause.code === "ENOENT" ? howToInstall(program) : `${program} could not be run: ${cause.message}`;
      end(() => reject(new CommandError(why, { cause })));
    });
    child.once(options.leavesProcess === true ? "exit" : "close", (code, name) =>
      end(() => {
        if (code === 0) resolve(out);
        else reject(new CommandError(`${argv.slice(0, 3).join(" ")}: ${said(err, code ?? name)}`));
      }),
    );
  });
}

function said(err: string, how: unknown): string {
  const lines = err.trim().split("\n").slice(-3).join("; ");
  return lines === "" ? `it ended with ${how}` : lines;
}
