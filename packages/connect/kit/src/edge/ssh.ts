import { spawn } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { NodeAccess } from "@nodeyard/client";
import { OnNodeError } from "../errors.ts";

/** One run of a script of `sh` on a node. */
export interface SshRun {
  readonly script: string;
  /** `$1` and so on. Letters, digits, dots, dashes and underscores. */
  readonly words: readonly string[];
  /** Called for each line of stdout. What it resolves with is sent to stdin, which ends then. */
  onLine?(line: string): undefined | Promise<string>;
  /** A file that is its stdin, in place of `onLine`; what it prints then goes to stdout and stderr of this process. */
  readonly stdin?: string;
  readonly signal: AbortSignal;
}

/** Runs a script on a node. Resolves with its exit code and the end of stderr; 255 is ssh's own: there was no connection, or it was lost. */
export type Ssh = (node: NodeAccess, run: SshRun) => Promise<{ readonly code: number; readonly err: string }>;

/** Characters of stderr that are kept for messages. */
const MAX_ERR = 2_000;
/** Without these ssh waits for a dead node as long as TCP does. Connections are not shared: one that hangs must not hold up the others. */
const OPTIONS = [
  ...["BatchMode=yes", "StrictHostKeyChecking=yes", "ControlPath=none", "ForwardAgent=no"],
  ...["ConnectTimeout=30", "ServerAliveInterval=30", "ServerAliveCountMax=4", "LogLevel=ERROR"],
].flatMap((option) => ["-o", option]);

/** OpenSSH, with the host keys that were read from the node when it was made. `identity`: path of a private key; absent: ssh's own choice. */
export function openSsh(identity: string | undefined): Ssh {
  const key = identity === undefined ? [] : ["-i", identity, "-o", "IdentitiesOnly=yes"];
  return async (node, { script, words, onLine, stdin, signal }) => {
    const { id, interface_ip: address, connection_port: port, connection_type: type, username } = node;
    if (address === null || port === null || (type !== null && type !== "ssh"))
      throw new OnNodeError(
        `node ${id} is not reached by ssh (${type ?? "without a type"}): give its label another pool`,
      );
    if (!words.every((word) => /^[\w.-]+$/.test(word)))
      throw new OnNodeError(`${JSON.stringify(words)} are no words for a command line`);
    const folder = mkdtempSync(join(tmpdir(), "nodeyard-ssh-"));
    try {
      const hosts = join(folder, "known_hosts");
      // sshd(8), SSH_KNOWN_HOSTS FILE FORMAT: the usual port is never written.
      const name = port === 22 ? address : `[${address}]:${port}`;
      writeFileSync(hosts, node.host_keys.map((one) => `${name} ${one}\n`).join(""), { mode: 0o600 });
      const target = username === null ? address : `${username}@${address}`;
      const quoted = `sh -c '${script.replaceAll("'", `'\\''`)}' nodeyard ${words.join(" ")}`;
      const argv = [
        ...OPTIONS,
        "-o",
        `UserKnownHostsFile=${hosts}`,
        ...key,
        "-p",
        String(port),
        "--",
        target,
        quoted,
      ];
      return await run(argv, onLine, stdin, signal);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

async function run(
  argv: readonly string[],
  onLine: SshRun["onLine"],
  stdin: string | undefined,
  signal: AbortSignal,
) {
  signal.throwIfAborted();
  const file = stdin === undefined ? undefined : openSync(stdin, "r");
  const child = spawn("ssh", argv, {
    stdio: file === undefined ? ["pipe", "pipe", "pipe"] : [file, "inherit", "inherit"],
    signal,
  });
  if (file !== undefined) closeSync(file);
  // First, because a process that cannot be started has no streams.
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(signal.aborted ? signal.reason : error));
    child.once("close", (status) => resolve(status ?? 255));
  });
  if (child.pid === undefined) await ended;
  let err = "";
  let failure: unknown;
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    err = (err + text).slice(-MAX_ERR);
  });
  // A program that ends before it has read all of its input is judged by its exit code.
  child.stdin?.on("error", () => {});
  if (onLine === undefined) child.stdin?.end();
  if (child.stdout !== null)
    createInterface({ input: child.stdout }).on("line", (line) => {
      onLine?.(line)?.then(
        (input) => child.stdin?.end(input),
        (error: unknown) => {
          failure = error;
          child.kill();
        },
      );
    });
  const code = await ended;
  if (failure !== undefined) throw failure;
  return { code, err: err.trim() };
}
