import { type ChildProcess, execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { patience } from "../patience.ts";
import { adopt } from "../zookeeper/children.ts";
import { freePort } from "../zookeeper/ports.ts";
import { SSHD } from "./require.ts";

export type HostKeyType = "ed25519" | "ecdsa-256" | "ecdsa-384" | "ecdsa-521" | "rsa";

export interface SshdOptions {
  /** Default: ed25519 alone, the quickest to make. */
  readonly hostKeyTypes?: readonly HostKeyType[];
  /** A line of authorized_keys that may log in as the user who runs this process. */
  readonly authorizedKey?: string;
  /** Default: a free one on 127.0.0.1. */
  readonly port?: number;
  /** Whether it listens at all of 127.0.0.0/8, for nodes with addresses of their own; else at 127.0.0.1 alone. */
  readonly loopback?: boolean;
  /** More lines of sshd_config; the first value of a keyword wins, and these come first. */
  readonly config?: readonly string[];
}

export interface Sshd {
  readonly host: string;
  readonly port: number;
  /** Folder with its configuration and keys; removed by `stop`. */
  readonly folder: string;
  /** "<type> <base64>" each, in the order of `hostKeyTypes`. */
  readonly hostKeys: readonly string[];
  /** What the server has written so far. */
  log(): string;
  /** Ends the server and removes its folder; a second call does nothing. */
  stop(): Promise<void>;
}

const run = promisify(execFile);

/** A real OpenSSH server on a loopback port, with its own host keys in a temporary folder. */
export async function startSshd(options: SshdOptions = {}): Promise<Sshd> {
  const folder = await mkdtemp(join(tmpdir(), "nodeyard-sshd-"));
  try {
    const types = options.hostKeyTypes ?? ["ed25519"];
    const hostKeys = await Promise.all(types.map((type) => makeHostKey(folder, type)));
    await writeFile(join(folder, "authorized_keys"), `${options.authorizedKey ?? ""}\n`, { mode: 0o600 });
    // Podman's own limits are beyond those of a root without CAP_SYS_RESOURCE.
    const ulimits = 'default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]';
    await writeFile(join(folder, "containers.conf"), `[containers]\n${ulimits}\n`);
    // OpenSSH refuses to start as root without its chroot folder, which the service unit makes elsewhere.
    if (process.getuid?.() === 0) await mkdir("/run/sshd", { recursive: true, mode: 0o755 });
    const port = options.port ?? (await freePort());
    await writeFile(
      join(folder, "sshd_config"),
      configuration(
        folder,
        port,
        types,
        // No range of addresses can be listened at, but all: who does not come from this machine is refused.
        [...(options.config ?? []), ...(options.loopback ? ["AllowUsers *@127.0.0.0/8"] : [])],
        options.loopback ? "0.0.0.0" : "127.0.0.1",
        await noPenalties(),
      ),
    );
    const child = spawn(SSHD, ["-D", "-e", "-f", join(folder, "sshd_config")], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    return await started(child, folder, port, hostKeys);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function makeHostKey(folder: string, type: HostKeyType): Promise<string> {
  const file = join(folder, type);
  const [algorithm, bits] = type.split("-") as [string, string | undefined];
  const size = bits ?? (type === "rsa" ? "2048" : undefined);
  const sizeOption = size === undefined ? [] : ["-b", size];
  await run("ssh-keygen", ["-q", "-t", algorithm, ...sizeOption, "-N", "", "-C", "", "-f", file]);
  const [name, key] = (await readFile(`${file}.pub`, "utf8")).split(" ");
  return `${name} ${key!.trim()}`;
}

/** OpenSSH 9.8 and newer penalise clients that disconnect without logging in; older versions do not know the keyword. */
async function noPenalties(): Promise<readonly string[]> {
  const { stdout, stderr } = await run(SSHD, ["-V"]).catch((error) => error);
  const [, major, minor] = /OpenSSH_(\d+)\.(\d+)/.exec(`${stdout}${stderr}`) ?? [];
  return Number(major) * 100 + Number(minor) >= 908 ? ["PerSourcePenalties no"] : [];
}

function configuration(
  folder: string,
  port: number,
  types: readonly HostKeyType[],
  extra: readonly string[],
  address: string,
  penalties: readonly string[],
): string {
  const lines = [
    ...extra,
    `ListenAddress ${address}`,
    `Port ${port}`,
    ...types.map((type) => `HostKey ${join(folder, type)}`),
    `AuthorizedKeysFile ${join(folder, "authorized_keys")}`,
    `PidFile ${join(folder, "pid")}`,
    // Logins do not run what the shell's files in a developer's home have it run.
    `SetEnv HOME=${folder} CONTAINERS_CONF=${folder}/containers.conf`,
    "StrictModes no",
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    // Tests open many connections at once and disconnect without logging in.
    "MaxStartups 1000",
    ...penalties,
    "LogLevel VERBOSE",
  ];
  return `${lines.join("\n")}\n`;
}

async function started(
  child: ChildProcess,
  folder: string,
  port: number,
  hostKeys: readonly string[],
): Promise<Sshd> {
  const host = "127.0.0.1";
  let text = "";
  let running = true;
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  const ended = adopt(child).then(() => {
    running = false;
  });
  const stop = async () => {
    if (running) child.kill("SIGKILL");
    await ended;
    await rm(folder, { recursive: true, force: true });
  };
  for (let attempt = 0; attempt < 500 * patience(); attempt++) {
    if (!running) break;
    if (await accepts(host, port)) return { host, port, folder, hostKeys, log: () => text, stop };
    await sleep(20);
  }
  await stop();
  throw new Error(`sshd did not start on ${host}:${port}:\n${text}`);
}

function accepts(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
