import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type DocumentInput,
  type NodeReport,
  type SliverSpecInput,
  signText,
} from "@nodeyard/sliver-protocol";
import { patient } from "../../../../../../testing/patience.ts";
import { DaemonRig } from "../../daemon/rig.ts";
import type { RealMachine } from "./rig.ts";

/** Milliseconds. */
const CALL_LIMIT = patient(60_000);
const PATIENCE = patient(60_000);

/** A `sliverd` with real slivers, on the machine of a test file. */
export class RealDaemon {
  readonly rig = new DaemonRig();
  #version = 0;

  static async start(real: RealMachine, backEnd: "account" | "container"): Promise<RealDaemon> {
    const daemon = await RealDaemon.prepare(real, backEnd);
    await daemon.rig.start();
    return daemon;
  }

  static async prepare(real: RealMachine, backEnd: "account" | "container"): Promise<RealDaemon> {
    const daemon = new RealDaemon();
    await daemon.rig.prepare();
    await daemon.rig.configure({
      backEnd,
      isolation: {
        folder: real.folder,
        cache: join(tmpdir(), "nodeyard-image-cache"),
        pool: { bytes: 1_500_000_000 },
      },
    });
    return daemon;
  }

  /** A full document; resolves when it is durable. */
  deliver(...slivers: SliverSpecInput[]): Promise<NodeReport> {
    const version = ++this.#version;
    const head: DocumentInput = { v: 1, node: "node-1", epoch: 1, version, issuedAt: 0, slivers };
    return this.rig.launcher.deliver(
      signText("document", head, this.rig.signer),
      AbortSignal.timeout(CALL_LIMIT),
    );
  }

  report(): Promise<NodeReport> {
    return this.rig.launcher.status(AbortSignal.timeout(CALL_LIMIT));
  }

  /** Until these run, as the daemon tells of it. */
  async running(...names: readonly string[]): Promise<void> {
    const end = performance.now() + PATIENCE;
    let report = await this.report();
    // Its processes are there before its SSH server answers, which a look at that time finds.
    const runs = (name: string) =>
      report.slivers.some((one) => one.name === name && one.phase === "running" && one.settled);
    while (!names.every(runs)) {
      if (performance.now() > end) throw new Error(`they do not run: ${this.rig.errors.join("")}`);
      report = await this.rig.launcher.watch(report.sequence, AbortSignal.timeout(CALL_LIMIT));
    }
  }

  stop(): Promise<void> {
    return this.rig.stop();
  }
}
