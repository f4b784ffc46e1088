import { execFile } from "node:child_process";
import { DriverError, messageOf } from "@nodeyard/driver";

/** The account of a program, with additional groups; null: the launcher's account. */
export type Account = {
  readonly uid: number;
  readonly gid: number;
  readonly groups?: readonly number[];
} | null;

/**
 * The command that starts a program as the account. Node gives a child one group and the launcher's namespaces, so setpriv(1) and
 * nsenter(1) set the others and then exec the program.
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

/** Options of a program. `account` absent: the launcher's. The abort kills the program. */
export interface RunOptions {
  readonly signal: AbortSignal;
  readonly account?: Account;
  readonly cwd?: string;
  /** Written to the program's standard input. */
  readonly input?: string;
}

/** Most output of a program in bytes; more is an error. */
const MAX_OUTPUT = 1024 * 1024;

/**
 * Runs a program of the host and returns its output. Rejects with kind `configuration` when the program is missing, otherwise with
 * `transient` and the end of its error output, or with the signal's reason.
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
    // A program that ends without reading its input is judged by its exit code, so EPIPE is ignored.
    child.stdin?.on("error", () => {});
    child.stdin?.end(input);
  });
}

/** The error of a program, with the last lines that it wrote to stderr. */
function failure(program: string, error: Error, stderr: string): DriverError {
  if ((error as NodeJS.ErrnoException).code === "ENOENT")
    return new DriverError("configuration", `${program} is not installed on this host`, { cause: error });
  const said = stderr.trim().split("\n").slice(-3).join("; ") || messageOf(error);
  return new DriverError("transient", `${program}: ${said}`, { cause: error });
}
