import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  backoff,
  type DriverContext,
  deadline,
  driverScanner,
  type LabelConfig,
  type PoolConfig,
  type Provider,
  sleep,
} from "@nodeyard/driver";
import type { ConformanceRig } from "@nodeyard/driver/conformance";
import { createScanner } from "@nodeyard/keyscan";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import {
  createSigningKeys,
  DocumentWriter,
  type Edit,
  type NodeReport,
  type SigningKeys,
  SliverClient,
  type SliverSpecInput,
  signerOf,
  unixTransport,
} from "@nodeyard/sliver-protocol";
import { type SliverProviderConfig, sliverConfig, sliverDriver, WRITER } from "../src/index.ts";

const PROGRAM = join(import.meta.dirname, "../../sliver/src/bin/sliverd.ts");
const SECONDS = 1000;

export const MACHINE = "machine-1";
export const CAPACITY = { cpu: 4000, memory: 4_194_304, disk: 20_971_520 };
/** What a label takes of it where a test says nothing. */
const LABEL = {
  name: "small",
  "cpu-guarantee": 100,
  "cpu-share": 64,
  "memory-guarantee": 64,
  memory: 256,
  pids: 200,
  disk: 64,
};

/** A real `sliverd` in a folder of its own; it may be killed and started again. */
export class Machine {
  readonly folder = mkdtempSync(join(tmpdir(), "nodeyard-driver-sliver-"));
  readonly name: string;
  readonly keys: SigningKeys;
  readonly said: string[] = [];
  readonly #isolation: object;
  readonly #backEnd: string;
  #child: ChildProcess | undefined;

  constructor(name = MACHINE, backEnd = "memory", isolation: object = {}, keysOf?: Machine) {
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

  get client(): SliverClient {
    return new SliverClient(unixTransport(this.socket));
  }

  /** Resolves when it answers. */
  async start(more: object = {}): Promise<void> {
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
    const args = ["--disable-warning=ExperimentalWarning", PROGRAM, "--config", file];
    const env = { ...process.env, NODEYARD_SLIVER_TESTING: "1" };
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
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(by);
    await ended;
  }

  status(): Promise<NodeReport> {
    return this.client.status(AbortSignal.timeout(20 * SECONDS));
  }

  /** As another launcher with this driver would, or as another writer. */
  change(edit: Edit, { writer = WRITER, epoch = 1 } = {}): Promise<NodeReport> {
    const document = new DocumentWriter({
      client: this.client,
      signer: signerOf(this.keys),
      node: this.name,
      writer,
      epoch,
      now: () => systemClock.now(),
      wait: (attempt, signal) => sleep(systemClock, backoff(systemRandom, attempt, 20, 500), signal),
      limit: () => deadline(systemClock, 20 * SECONDS, () => new Error("too late")),
    });
    return document.change(edit, new AbortController().signal);
  }

  /** Empty of whatever a test left, and running. */
  async clear(): Promise<void> {
    await this.start();
    await this.change((slivers) => slivers.clear());
    await this.until(({ unlisted }) => unlisted.length === 0);
  }

  async until(good: (report: NodeReport) => boolean): Promise<NodeReport> {
    const signal = AbortSignal.timeout(60 * SECONDS);
    let report = await this.status();
    while (!good(report)) report = await this.client.watch(report.sequence, signal);
    return report;
  }

  /** Takes everything of slivers' from this host, as an operator does. */
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

export function contextOf(installation: string, warnings: string[] = []): DriverContext {
  const warn = (_: object, text: string) => void warnings.push(text);
  const log = { debug() {}, info() {}, warn, error() {} };
  const scan = driverScanner(createScanner({ clock: systemClock }));
  return { clock: systemClock, random: systemRandom, log, scan, installation };
}

/** What the driver makes of a provider of the file; a finding is an error. */
export function compile(raw: Readonly<Record<string, unknown>>): SliverProviderConfig {
  const report = ({ path, message }: { path: readonly unknown[]; message: string }) => {
    throw new Error(`${path.join(".")}: ${message}`);
  };
  const { name, ...rest } = raw;
  const findings = sliverConfig.schema.safeParse(rest);
  if (!findings.success) throw findings.error;
  const labels = (raw.pools as { labels: { name: string }[] }[]).flatMap((pool) => pool.labels);
  const context = { labels: new Set(labels.map((one) => one.name)), diskimages: new Map(), report };
  const config = sliverConfig.load({ name, ...rest }, context);
  if (config === undefined) throw new Error("the provider was refused");
  return config;
}

export function providerOf(machines: readonly Machine[], label: object = {}, more: object = {}) {
  return compile({
    name: "lab",
    machines: machines.map(({ name, socket }) => ({ name, socket })),
    "signing-keys": machines[0]!.keysFile,
    pools: [{ name: "main", labels: [{ ...LABEL, ...label }] }],
    ...more,
  });
}

export async function sliverRig(machine: Machine, label: object = {}): Promise<ConformanceRig> {
  await machine.clear();
  const config = providerOf([machine], label);
  const [pool] = config.pools as readonly [PoolConfig];
  const foreign = (count: number, more: Partial<SliverSpecInput> = {}) =>
    machine.change((slivers) => {
      const name = `theirs${count}`;
      slivers.set(name, { name, generation: 1, instantiation: "plc-instantiated", ...more });
    });
  let count = 0;
  const opened: Provider[] = [];
  return {
    clock: systemClock,
    providerName: config.name,
    pool,
    label: pool.labels.get("small") as LabelConfig,
    async open(installation) {
      const provider = await sliverDriver.open(config, contextOf(installation));
      opened.push(provider);
      return provider;
    },
    drive: (work) => work,
    settle: async () => {},
    makeForeign: async () => void (await foreign(count++, { rspec: { disk: 65_536 } })),
    fillQuota: async () =>
      void (await foreign(count++, {
        instantiation: "delegated",
        rspec: { cpuGuarantee: CAPACITY.cpu, disk: 65_536 },
      })),
    breakList: () => void machine.kill(),
    async stop() {
      for (const provider of opened) await provider.close();
    },
  };
}
