import { execFile } from "node:child_process";
import { DriverError, messageOf } from "@nodeyard/driver";

/** Who a program runs as, with further groups; null: as the launcher. */
export type Account = {
  readonly uid: number;
  readonly gid: number;
  readonly groups?: readonly number[];
} | null;

/**
 * How a program is started as the account. Node gives a child one group and our own namespace: setpriv(1) and nsenter(1) give it others,
 * and are replaced by it.
 */
export function as(account: Account, program: string, words: readonly string[], namespace?: string) {
  const { groups = [], ...ids } = account ?? {};
  if (account === null || (groups.length === 0 && namespace === undefined))
    return { program, words: [...words], ids };
  const more = groups.length === 0 ? ["--clear-groups"] : ["--groups", groups.join(",")];
  const who = ["--reuid", `${account.uid}`, "--regid", `${account.gid}`, ...more, "--no-new-privs"];
  const started = ["setpriv", ...who, "--", program, ...words];
  const all =
    namespace === undefined ? started : ["nsenter", `--net=/run/netns/${namespace}`, "--", ...started];
  return { program: all[0] as string, words: all.slice(1), ids: {} };
}

export interface RunOptions {
  readonly signal: AbortSignal;
  readonly account?: Account;
  readonly cwd?: string;
  /** Written to its standard input. */
  readonly input?: string;
}

/** Output that is kept of a program, bytes; more is an error. */
const MAX_OUTPUT = 1024 * 1024;

/**
 * Runs a program of the host to its end and returns what it wrote. Rejects with kind `configuration` where the program is
 * missing, else with `transient` and its last words, or with the signal's reason.
 */
export function run(program: string, words: readonly string[], options: RunOptions): Promise<string> {
  const { signal, account = null, cwd, input = "" } = options;
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const started = as(account, program, words);
    const child = execFile(
      started.program,
      started.words,
      {
        ...(cwd === undefined ? {} : { cwd }),
        ...started.ids,
        env: { PATH: process.env.PATH ?? "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C" },
        signal,
        killSignal: "SIGKILL",
        maxBuffer: MAX_OUTPUT,
      },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else reject(signal.aborted ? signal.reason : failure(program, error, stderr));
      },
    );
    // A program that ends without reading shows that by its exit code.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

function failure(program: string, error: Error, stderr: string): DriverError {
  if ((error as NodeJS.ErrnoException).code === "ENOENT")
    return new DriverError("configuration", `${program} is not installed on this host`, { cause: error });
  const said = stderr.trim().split("\n").slice(-3).join("; ") || messageOf(error);
  return new DriverError("transient", `${program}: ${said}`, { cause: error });
}
