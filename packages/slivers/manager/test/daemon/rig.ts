import { type ChildProcess, execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SliverClient, unixTransport } from "@nodeyard/sliver-protocol";
import { patient } from "../../../../../testing/patience.ts";
import { endDaemon } from "../../../../../testing/slivers/index.ts";
import { freePort } from "../../../../../testing/zookeeper/ports.ts";
import { signerOf } from "../api/rig.ts";

const BIN = join(import.meta.dirname, "../../src/bin");
const MEMORY = join(import.meta.dirname, "../../../../../testing/slivers/memory-sliverd.ts");
const CLIENT = join(import.meta.dirname, "client.py");

export const TOKEN = "a-token-of-root";

/** A daemon of its own in a folder of its own, through its program. */
export class DaemonRig {
  readonly signer = signerOf("k1");
  readonly errors: string[] = [];
  folder = "";
  port = 0;
  #child: ChildProcess | undefined;

  async prepare(): Promise<void> {
    this.folder = await mkdtemp(join(tmpdir(), "sliverd-"));
    // Accounts must be able to reach their sockets.
    await chmod(this.folder, 0o711);
    this.port = await freePort();
    await this.configure();
  }

  configure(more: object = {}): Promise<void> {
    const config = {
      node: "node-1",
      backEnd: "memory",
      stateFolder: join(this.folder, "state"),
      runFolder: join(this.folder, "run"),
      keySet: { v: 1, version: 1, keys: [{ kid: "k1", x: this.signer.x }] },
      capacity: { cpu: 4000 },
      machine: { cpu: 4000 },
      control: {
        uid: process.getuid!(),
        keysFile: join(this.folder, "keys"),
        forwarder: "/usr/bin/sliver-forward",
      },
      tcp: {
        port: this.port,
        tokens: [{ sha256: createHash("sha256").update(TOKEN).digest("hex"), account: "root" }],
      },
      startSpacingSeconds: 0,
      ...more,
    };
    return writeFile(join(this.folder, "config.json"), JSON.stringify(config));
  }

  /** Resolves when it has said that it runs; rejects with what it said instead. `first` is loaded before it, with `variables`. */
  start(first: readonly string[] = [], variables: NodeJS.ProcessEnv = {}): Promise<void> {
    const args = [
      "--disable-warning=ExperimentalWarning",
      // As its own first line has it.
      "--max-semi-space-size=2",
      ...[MEMORY, ...first].flatMap((file) => ["--import", file]),
      join(BIN, "sliverd.ts"),
      "--config",
      join(this.folder, "config.json"),
    ];
    const env = { ...process.env, ...variables };
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    const up = new Promise<void>((resolve, reject) => {
      child.stderr!.on("data", (chunk: Buffer) => {
        said += chunk.toString();
        this.errors.push(chunk.toString());
        if (said.includes("info sliverd ")) resolve();
      });
      child.on("exit", (code) => reject(new Error(`exit ${code}: ${said}`)));
    });
    return up.then(() => {
      this.#child = child;
    });
  }

  /** What the program says with this option; rejects with what it complains of. */
  run(...options: readonly string[]): Promise<string> {
    const args = ["--disable-warning=ExperimentalWarning", join(BIN, "sliverd.ts"), ...options];
    return new Promise((resolve, reject) => {
      execFile(process.execPath, [...args, "--config", join(this.folder, "config.json")], (error, out) =>
        error === null ? resolve(out) : reject(error),
      );
    });
  }

  /** Whether it ended by itself. */
  get dead(): boolean {
    return this.#child?.exitCode != null || this.#child?.signalCode != null;
  }

  /** MiB of memory that it and its child processes have, each. */
  get resident(): number[] {
    const { pid } = this.#child!;
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ");
    return [String(pid), ...children].map(
      (one) =>
        Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${one}/status`, "utf8"))?.[1] ?? 0) / 1024,
    );
  }

  /** Ports of TCP on which it listens. */
  get listens(): number[] {
    const { pid } = this.#child!;
    const own = readdirSync(`/proc/${pid}/fd`).map((fd) => linkOf(`/proc/${pid}/fd/${fd}`));
    const lines = ["tcp", "tcp6"].flatMap((kind) =>
      readFileSync(`/proc/${pid}/net/${kind}`, "utf8").split("\n"),
    );
    const LISTEN = "0A";
    return lines
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state, , , , , , inode]) => state === LISTEN && own.includes(`socket:[${inode}]`))
      .map(([, local]) => Number.parseInt(local!.split(":")[1]!, 16));
  }

  /** Nobody reads any more what it says. */
  deafen(): Promise<void> {
    const { stderr } = this.#child!;
    const closed = new Promise<void>((resolve) => stderr!.once("close", resolve));
    stderr!.destroy();
    return closed;
  }

  signal(name: "SIGHUP" | "SIGUSR2"): void {
    this.#child!.kill(name);
  }

  /** The exit code, or the signal. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<unknown> {
    const child = this.#child;
    if (child === undefined) return undefined;
    this.#child = undefined;
    return endDaemon(child, signal);
  }

  async stop(): Promise<void> {
    await this.end("SIGKILL");
    await rm(this.folder, { recursive: true, force: true });
  }

  socket(account: string): string {
    return join(this.folder, "run", account, "api.sock");
  }

  get launcher(): SliverClient {
    return new SliverClient(unixTransport(this.socket("control")));
  }

  /** Calls with Python's client, one after another. */
  python(
    place: string,
    calls: readonly unknown[],
    { path = "/", token = "", uid = 0 } = {},
  ): Promise<Answer[]> {
    const env = { ...process.env, ...(uid === 0 ? {} : { SLIVER_UID: String(uid) }) };
    return run("python3", [CLIENT, place, token, path], JSON.stringify(calls), env).then(({ out }) =>
      JSON.parse(out),
    );
  }

  forward(account: string, input: string): Promise<{ out: string; code: number }> {
    const env = { ...process.env, NODEYARD_SLIVER_RUN: join(this.folder, "run") };
    return run(process.execPath, [join(BIN, "sliver-forward.ts"), account], input, env);
  }
}

export interface Answer {
  readonly result?: unknown;
  readonly fault?: number;
  readonly text?: string;
  readonly error?: string;
}

function run(
  program: string,
  args: string[],
  input: string,
  env: NodeJS.ProcessEnv,
): Promise<{ out: string; code: number }> {
  return new Promise((resolve, reject) => {
    const options = { env, maxBuffer: 16 * 1024 * 1024, timeout: patient(60_000) };
    const child = execFile(program, args, options, (error, out, complaint) => {
      const code = error === null ? 0 : Number(error.code);
      if (Number.isNaN(code) || (program === "python3" && code !== 0))
        reject(new Error(`${error?.message} ${complaint}`));
      else resolve({ out, code });
    });
    child.stdin!.on("error", () => undefined);
    child.stdin!.end(input);
  });
}

/** What a descriptor is; one that is closed meanwhile is none. */
function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}
