import { type ChildProcess, execFile, spawn } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { makeKey } from "@nodeyard/process";
import { messageOf, NodeyardError } from "@nodeyard/runtime";

const run = promisify(execFile);
const SSHD = "/usr/sbin/sshd";
const START_TRIES = 250;
const TRY_MS = 20;

export interface LocalSshd {
  readonly host: string;
  readonly port: number;
  /** "<type> <base64>". */
  readonly hostKey: string;
  stop(): Promise<void>;
}

/** What this machine lacks for an SSH server, or undefined. */
export function missingForSshd(path: string): string | undefined {
  if (!runs(SSHD)) return SSHD;
  return ["ssh", "ssh-keygen"].find(
    (tool) => !path.split(delimiter).some((folder) => runs(join(folder, tool))),
  );
}

/**
 * Starts a real OpenSSH server on loopback, only for the user that runs this process. Key and port are kept in `folder`, so that the next
 * start is the same host. The server ends with this process, however that ends.
 */
export async function startLocalSshd(folder: string, authorizedKey: string): Promise<LocalSshd> {
  const key = await makeKey(folder, "host_key");
  const [type, base64] = readFileSync(`${key}.pub`, "utf8").split(" ");
  const portFile = join(folder, "port");
  const port = await freePort(existsSync(portFile) ? Number(readFileSync(portFile, "utf8")) : 0);
  writeFileSync(portFile, `${port}\n`);
  writeFileSync(join(folder, "authorized_keys"), `${readFileSync(`${authorizedKey}.pub`, "utf8")}\n`, {
    mode: 0o600,
  });
  // As root the server needs its chroot folder, which otherwise the service unit makes.
  if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true, mode: 0o755 });
  const config = join(folder, "sshd_config");
  writeFileSync(config, configuration(folder, port));
  // The shell ends the server when its input ends, which the system causes also for a killed process.
  const child = spawn(
    "/bin/sh",
    ["-c", '"$@" & pid=$!; cat >/dev/null; kill $pid', "sh", SSHD, "-D", "-e", "-f", config],
    {
      stdio: ["pipe", "ignore", "pipe"],
      detached: true,
    },
  );
  return started(child, port, `${type} ${base64!.trim()}`);
}

/** Runs a command on a node over SSH; only a host with these keys is accepted. Resolves with its output. */
export async function runOverSsh(
  node: {
    readonly host: string;
    readonly port: number;
    readonly username: string;
    readonly hostKeys: readonly string[];
  },
  key: string,
  knownHosts: string,
  command: string,
): Promise<string> {
  // sshd(8), SSH_KNOWN_HOSTS FILE FORMAT: the usual port is never written.
  const name = node.port === 22 ? node.host : `[${node.host}]:${node.port}`;
  writeFileSync(knownHosts, node.hostKeys.map((line) => `${name} ${line}\n`).join(""));
  const options = [
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    `UserKnownHostsFile=${knownHosts}`,
    "ConnectTimeout=10",
  ];
  const target = [`${node.username}@${node.host}`, command];
  const words = [
    "-F",
    "none",
    "-i",
    key,
    "-p",
    String(node.port),
    ...options.flatMap((option) => ["-o", option]),
  ];
  try {
    const { stdout } = await run("ssh", [...words, "--", ...target], { timeout: 20_000 });
    return stdout.trim();
  } catch (error) {
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    const said = `${stdout ?? ""}\n${stderr ?? ""}`.trim().split("\n").at(-1);
    throw new NodeyardError(
      "demo.ssh_failed",
      `ssh to ${node.username}@${node.host}:${node.port} failed: ${said === "" ? messageOf(error) : said}`,
      { cause: error },
    );
  }
}

function configuration(folder: string, port: number): string {
  return `${[
    "ListenAddress 127.0.0.1",
    `Port ${port}`,
    `HostKey ${join(folder, "host_key")}`,
    `AuthorizedKeysFile ${join(folder, "authorized_keys")}`,
    "PidFile none",
    "StrictModes no",
    // Without PAM the server rejects accounts whose password is locked, as root's is on some systems.
    `UsePAM ${isLocked(process.getuid?.() ?? -1) ? "yes" : "no"}`,
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "MaxStartups 100",
  ].join("\n")}\n`;
}

/** Whether the account's password begins with "!"; only root can see that, and only root's servers check it. */
function isLocked(uid: number): boolean {
  if (uid !== 0) return false;
  try {
    return /^root:!/m.test(readFileSync("/etc/shadow", "utf8"));
  } catch {
    return false;
  }
}

async function started(child: ChildProcess, port: number, hostKey: string): Promise<LocalSshd> {
  let text = "";
  child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
    text = (text + chunk).slice(-2_000);
  });
  child.stdin?.on("error", () => {});
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const stop = async () => {
    child.stdin?.end();
    await ended;
  };
  for (let attempt = 0; attempt < START_TRIES; attempt++) {
    if (await accepts(port)) return { host: "127.0.0.1", port, hostKey, stop };
    await sleep(TRY_MS);
  }
  await stop();
  throw new NodeyardError(
    "demo.no_sshd",
    `sshd did not start on 127.0.0.1:${port}: ${text.trim().split("\n").at(-1)}`,
  );
}

/** `wanted` if it is free, else any port. */
function freePort(wanted: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", () => (wanted === 0 ? reject(new Error("no free port")) : resolve(freePort(0))));
    server.listen(wanted, "127.0.0.1", () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    const done = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => done(true)).once("error", () => done(false));
  });
}

function runs(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
