import { spawn } from "node:child_process";
import { Readable } from "node:stream";
import { CONTROL_USER, commandTransport, SliverClient } from "@nodeyard/sliver-protocol";
import { SliverHostError } from "../errors.ts";
import type { Remote } from "../remote.ts";

/** Most characters of a command's output. More than that is not one of ours, and the program is killed. */
const MAX_OUTPUT = 1024 * 1024;

/**
 * How an operator logs in to a machine to enrol it or to remove sliverd from it. What is absent is as in the operator's own ssh
 * configuration.
 */
export interface SshLogin {
  /** `[USER@]HOST` for ssh; an alias of the operator's configuration is allowed. */
  readonly destination: string;
  readonly port?: number;
  /** Path of a private key; keys of an agent are then not tried. */
  readonly identity?: string;
  /** Used instead of the operator's own ssh configuration. */
  readonly configFile?: string;
}

/**
 * Connects with the operator's own keys, known hosts and jump hosts. Throws SliverHostError for a destination that ssh would read as an
 * option.
 */
export function sshRemote(login: SshLogin): Remote {
  const { destination } = login;
  const words = wordsOf(login);
  return {
    name: destination,
    run: (line, { signal, input }) =>
      runCommand(["ssh", ...words, "-T", "--", destination, line], destination, signal, input),
    async target(signal) {
      const text = await runCommand(
        ["ssh", ...words, "-G", "--", destination],
        destination,
        signal,
        undefined,
      );
      const value = (name: string) => new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1];
      return { host: value("hostname") ?? destination, port: Number(value("port") ?? 22) };
    },
  };
}

/**
 * A client for the sliver manager of a machine, by its control account and the launcher's key. The network path is that of the operator's
 * ssh configuration. `user` of the destination and `identity` are not used.
 */
export function controlClient(
  { identity: _, destination, ...login }: SshLogin,
  controlKey: string,
): SliverClient {
  const host = destination.slice(destination.indexOf("@") + 1);
  const words = wordsOf({ ...login, destination: `${CONTROL_USER}@${host}`, identity: controlKey });
  return new SliverClient(
    commandTransport([
      "ssh",
      ...words,
      "-o",
      "LogLevel=ERROR",
      "-T",
      "--",
      `${CONTROL_USER}@${host}`,
      "true",
    ]),
  );
}

/** Options of ssh. BatchMode, so that a question for a password is an error and not a hang. Throws SliverHostError. */
function wordsOf({ destination, configFile, port, identity }: SshLogin): string[] {
  if (!/^(?:[a-z_][a-z0-9_-]{0,31}@)?[A-Za-z0-9:][A-Za-z0-9.:%_-]{0,254}$/.test(destination))
    throw new SliverHostError(`${JSON.stringify(destination)} is not [USER@]HOST`);
  return [
    ...(configFile === undefined ? [] : ["-F", configFile]),
    ...(port === undefined ? [] : ["-p", String(port)]),
    ...(identity === undefined ? [] : ["-i", identity, "-o", "IdentitiesOnly=yes"]),
    ...["BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=15", "ServerAliveCountMax=4"].flatMap(
      (one) => ["-o", one],
    ),
  ];
}

/** This machine, with the rights of the user who runs the program. */
export const localRemote: Remote = {
  name: "this machine",
  run: (line, { signal, input }) => runCommand(["sh", "-c", line], "this machine", signal, input),
};

/**
 * Runs a program with `input` on its standard input; resolves with its output. Rejects with the last line of its error output, which
 * for ssh is the reason. When the signal aborts, the program is killed and its reason is reported.
 */
function runCommand(
  [program, ...words]: readonly [string, ...string[]],
  name: string,
  signal: AbortSignal,
  input: string | Readable | undefined,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const fail = (why: string, cause?: unknown) => reject(new SliverHostError(`${name}: ${why}`, { cause }));
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "pipe"], signal });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out += text;
      if (out.length > MAX_OUTPUT) child.kill("SIGKILL");
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err = (err + text).slice(-4_000);
    });
    child.on("error", (cause) =>
      fail(signal.aborted ? String((signal.reason as Error).message) : cause.message, cause),
    );
    child.on("close", (code, by) => {
      if (code === 0) return resolve(out);
      const said = err.trim().split("\n").at(-1) ?? "";
      fail(said === "" ? `${program} ended with ${by ?? code}` : said);
    });
    // A program that ends before it has read everything is judged by its exit code, so EPIPE is ignored.
    child.stdin.on("error", () => undefined);
    const source = Readable.from(typeof input === "string" ? [Buffer.from(input)] : (input ?? []));
    source.on("error", (cause) => {
      child.kill("SIGKILL");
      fail(`what was to be copied cannot be read: ${cause.message}`, cause);
    });
    source.pipe(child.stdin);
  });
}
