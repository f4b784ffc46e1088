import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import {
  type NodeReport,
  rawPublicKey,
  SliverClient,
  type SliverSpecInput,
  signText,
  unixTransport,
} from "@nodeyard/sliver-protocol";
import { patient } from "../patience.ts";

const PROGRAM = join(import.meta.dirname, "../../packages/slivers/manager/src/bin/sliverd.ts");
const NODE = "many";
/** A sliver that failed this often will not start. */
const ATTEMPTS = 4;

/** A real `sliverd` on this machine, with everything of its own below one folder. */
export class Sliverd {
  readonly #folder: string;
  readonly #signer = { kid: "k1", privateKey: generateKeyPairSync("ed25519").privateKey };
  readonly #child: ChildProcess;
  readonly #client: SliverClient;
  #version = 0;

  private constructor(folder: string, child: ChildProcess) {
    this.#folder = folder;
    this.#child = child;
    this.#client = new SliverClient(unixTransport(join(folder, "run/control/api.sock")));
  }

  /** `isolation` without its folder; `env` beside this process's own. Resolves when it answers. */
  static async start(
    folder: string,
    backEnd: "account" | "container",
    machine: { readonly highestIndex: number; readonly spares?: number },
    isolation: object,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Sliverd> {
    const file = join(folder, "sliverd.json");
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", PROGRAM, "--config", file],
      // Detached: a signal from the terminal goes to the script alone, which then ends the slivers in order.
      { stdio: ["ignore", "inherit", "inherit"], detached: true, env: { ...process.env, ...env } },
    );
    const daemon = new Sliverd(folder, child);
    const config = {
      node: NODE,
      backEnd,
      stateFolder: join(folder, "state"),
      runFolder: join(folder, "run"),
      keySet: {
        v: 1,
        version: 1,
        keys: [{ kid: daemon.#signer.kid, x: rawPublicKey(daemon.#signer.privateKey) }],
      },
      machine: { cpu: 1000, ...machine },
      startSpacingSeconds: 0,
      isolation: { folder: join(folder, "slivers"), ...isolation },
    };
    await mkdir(folder, { recursive: true });
    await writeFile(file, JSON.stringify(config));
    return daemon;
  }

  get pid(): number {
    return this.#child.pid!;
  }

  /** Folder of the pool. */
  get pool(): string {
    return join(this.#folder, "slivers/pool");
  }

  /** A full document. Resolves when it is durable. */
  async deliver(slivers: readonly SliverSpecInput[]): Promise<NodeReport> {
    const head = {
      v: 1,
      node: NODE,
      epoch: 1,
      version: ++this.#version,
      issuedAt: 0,
      removes: 4096,
      slivers,
    };
    return this.#client.deliver(
      signText("document", head, this.#signer),
      AbortSignal.timeout(patient(60_000)),
    );
  }

  /** Makes what a sliver has an image of that name. */
  async snapshot(sliver: string, image: string): Promise<void> {
    await this.#client.call("Snapshot", [sliver, image], AbortSignal.timeout(patient(60_000)));
  }

  status(): Promise<NodeReport> {
    return this.#client.status(AbortSignal.timeout(patient(60_000)));
  }

  /** The next report after `before`, as soon as there is one. */
  watch(before: NodeReport): Promise<NodeReport> {
    return this.#client.watch(before.sequence, AbortSignal.timeout(patient(60_000)));
  }

  /** Until a report satisfies; rejects after `patience` milliseconds, with the errors of the last report. */
  async until(good: (report: NodeReport) => boolean, limitMs: number): Promise<NodeReport> {
    const end = performance.now() + patient(limitMs);
    let report = await this.#first(end);
    while (!good(report)) {
      const failing = report.slivers.some(({ error }) => (error?.attempts ?? 0) >= ATTEMPTS);
      if (failing || report.refused.length > 0 || performance.now() > end)
        throw new Error(`it did not come about: ${complaints(report)}`);
      report = await this.watch(report);
    }
    return report;
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGTERM");
    await ended;
  }

  /** Stops it and ends all slivers, spares too; nothing of it stays on the machine but its files. */
  async dismantle(): Promise<void> {
    await this.stop();
    const file = join(this.#folder, "sliverd.json");
    execFileSync(process.execPath, [
      "--disable-warning=ExperimentalWarning",
      ...[PROGRAM, "--config", file, "--dismantle"],
    ]);
  }

  async #first(end: number): Promise<NodeReport> {
    for (;;) {
      try {
        return await this.status();
      } catch (error) {
        if (this.#child.exitCode !== null || performance.now() > end) throw error;
        await pause(100);
      }
    }
  }
}

function complaints({ slivers, refused }: NodeReport): string {
  const phases = new Map<string, number>();
  for (const { phase } of slivers) phases.set(phase, (phases.get(phase) ?? 0) + 1);
  const errors = slivers.flatMap(({ name, error }) =>
    error === undefined ? [] : [`${name}: ${error.message}`],
  );
  return JSON.stringify({
    phases: Object.fromEntries(phases),
    refused: refused.slice(0, 3),
    errors: errors.slice(0, 5),
  });
}
