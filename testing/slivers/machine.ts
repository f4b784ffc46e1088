import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { WRITER } from "@nodeyard/driver-sliver";
import {
  createSigningKeys,
  type Edit,
  type NodeReport,
  type SigningKeys,
  SliverClient,
  unixTransport,
} from "@nodeyard/sliver-protocol";
import { patient } from "../patience.ts";
import { endDaemon } from "./end-daemon.ts";
import type { Uses } from "./memory-back-end.ts";
import { writerOf } from "./writer.ts";

const MEMORY = join(import.meta.dirname, "memory-sliverd.ts");
const PROGRAM = join(import.meta.dirname, "../../packages/slivers/manager/src/bin/sliverd.ts");
const SECONDS = 1000;

export const CAPACITY = { cpu: 4000, memory: 4_194_304, disk: 20_971_520 };

/** A real `sliverd` in a folder of its own; it may be killed and started again. */
export class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), "nodeyard-driver-sliver-"));
  readonly name: string;
  readonly keys: SigningKeys;
  readonly said: string[] = [];
  readonly #isolation: object;
  readonly #backEnd: string;
  #child: ChildProcess | undefined;

  constructor(name = "machine-1", backEnd = "memory", isolation: object = {}, keysOf?: Machine) {
    this.name = name;
    this.#backEnd = backEnd;
    this.#isolation = isolation;
    this.keys = keysOf?.keys ?? createSigningKeys(this.keysFile);
  }

  get keysFile(): string {
    return join(this.folder, "keys.json");
  }

  get socket(): string {
    return join(this.folder, "run/control/api.sock");
  }

  /** What slivers of the back end `memory` use, by their names, as of its next look at them. */
  use(uses: Readonly<Record<string, Uses>>): void {
    writeFileSync(this.#usesFile, JSON.stringify(uses));
  }

  get #usesFile(): string {
    return join(this.folder, "uses.json");
  }

  get client(): SliverClient {
    return new SliverClient(unixTransport(this.socket));
  }

  /** Resolves when it answers. `more`: of its configuration. */
  async start(more: object = {}, variables: NodeJS.ProcessEnv = {}): Promise<void> {
    if (this.#child !== undefined) return;
    const config = {
      node: this.name,
      backEnd: this.#backEnd,
      stateFolder: join(this.folder, "state"),
      runFolder: join(this.folder, "run"),
      keySet: this.keys.keySet,
      capacity: CAPACITY,
      machine: { cpu: 4000, highestIndex: 30 },
      control: { uid: process.getuid!() },
      startSpacingSeconds: 0,
      isolation: this.#isolation,
      ...more,
    };
    const file = join(this.folder, "sliverd.json");
    writeFileSync(file, JSON.stringify(config));
    const args = ["--disable-warning=ExperimentalWarning", "--import", MEMORY, PROGRAM, "--config", file];
    const env = { ...process.env, NODEYARD_SLIVER_USES: this.#usesFile, ...variables };
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "ignore", "pipe"] });
    let text = "";
    await new Promise<void>((resolve, reject) => {
      child.stderr!.on("data", (chunk: Buffer) => {
        text += chunk.toString();
        this.said.push(chunk.toString());
        if (text.includes("info sliverd ")) resolve();
      });
      child.once("exit", (code) => reject(new Error(`sliverd ended with ${code}: ${text}`)));
    });
    this.#child = child;
  }

  async kill(by: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    this.#child = undefined;
    await endDaemon(child, by);
  }

  status(): Promise<NodeReport> {
    return this.client.status(AbortSignal.timeout(patient(20 * SECONDS)));
  }

  /** Connects as another launcher with this driver would, or as another writer. */
  change(edit: Edit, { writer = WRITER, epoch = 1 } = {}): Promise<NodeReport> {
    const { client, keys, name: node } = this;
    return writerOf({ client, keys, node, writer, epoch }, 20 * SECONDS).change(
      edit,
      new AbortController().signal,
    );
  }

  /** Removes what a test left, and starts it if it does not run. */
  async clear(): Promise<void> {
    await this.start();
    await this.change((slivers) => slivers.clear());
    await this.until(({ unlisted }) => unlisted.length === 0);
  }

  async until(good: (report: NodeReport) => boolean): Promise<NodeReport> {
    const signal = AbortSignal.timeout(patient(60 * SECONDS));
    let report = await this.status();
    while (!good(report)) report = await this.client.watch(report.sequence, signal);
    return report;
  }

  /** Removes everything of slivers from this host, as an operator does. */
  async dismantle(): Promise<void> {
    await this.kill("SIGTERM");
    const words = [PROGRAM, "--dismantle", "--config", join(this.folder, "sliverd.json")];
    execFileSync(process.execPath, ["--disable-warning=ExperimentalWarning", ...words], { stdio: "pipe" });
  }

  async stop(): Promise<void> {
    await this.kill("SIGTERM");
    rmSync(this.folder, { recursive: true, force: true });
  }
}
