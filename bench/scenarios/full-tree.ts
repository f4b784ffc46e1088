import { burst, drain } from "../lib/burst.ts";
import { launcherConfig } from "../lib/config.ts";
import { type LauncherProcess, startLauncher } from "../lib/launcher.ts";
import { Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { type Server, startServer } from "../lib/server.ts";
import { median, round } from "../lib/statistics.ts";
import { startTap, type Tap } from "../lib/tap.ts";
import { fillTree } from "../lib/tree-contents.ts";

const WARM_UP = 2_000;
const COUNT = 500;
const NODES = 5_000;
const REQUESTS = 5_000;
/** Bursts per requested round: one is a quarter of a second of CPU, and a garbage collection a good part of it. */
const BURSTS = 4;

export const fullTree: Scenario = {
  name: "full-tree",
  about:
    "500 at once after 2,000, on an empty tree and beside 5,000 idle nodes and 5,000 unservable requests, in turn",
  async *run({ rounds }): AsyncGenerator<Figure> {
    await using empty = await Installation.start(0, 0);
    await using full = await Installation.start(NODES, REQUESTS);
    for (let burst = 0; burst < rounds * BURSTS; burst++) {
      // The second side finds the processor as the first has left it, so they alternate.
      const order = burst % 2 === 0 ? [empty, full] : [full, empty];
      for (const one of order) await one.burst();
    }
    const [base, beside] = [empty.figure(), full.figure()];
    const against = (field: string) => round(Number(beside[field]) / Number(base[field]), 3);
    yield base;
    yield {
      ...beside,
      cpuRatio: against("cpuMsPerRequest"),
      packetRatio: against("packetsPerRequest"),
      subOperationRatio: against("subOperationsPerRequest"),
    };
  },
};

/** A server with a launcher, and the cost of its bursts. */
class Installation implements AsyncDisposable {
  readonly #contents: { readonly nodes: number; readonly requests: number };
  readonly #server: Server;
  readonly #tap: Tap;
  readonly #launcher: LauncherProcess;
  readonly #requester: Requester;
  readonly #parts: AsyncDisposableStack;
  readonly #cpu: number[] = [];
  readonly #packets: number[] = [];
  readonly #subOperations: number[] = [];

  private constructor(
    contents: { readonly nodes: number; readonly requests: number },
    parts: AsyncDisposableStack,
    server: Server,
    tap: Tap,
    launcher: LauncherProcess,
    requester: Requester,
  ) {
    this.#contents = contents;
    this.#parts = parts;
    this.#server = server;
    this.#tap = tap;
    this.#launcher = launcher;
    this.#requester = requester;
  }

  /** With these contents in its tree, and warm. */
  static async start(nodes: number, requests: number): Promise<Installation> {
    await using parts = new AsyncDisposableStack();
    const server = parts.use(await startServer());
    await fillTree(server.client, nodes, requests);
    const tap = parts.use(await startTap(server.address));
    const launcher = parts.use(await startLauncher(server.client, launcherConfig(tap), 1));
    const requester = await Requester.open(server.client);
    await drain(server, requester, await burst(requester, launcher, WARM_UP), nodes);
    return new Installation({ nodes, requests }, parts.move(), server, tap, launcher, requester);
  }

  async burst(): Promise<void> {
    this.#tap.reset();
    const one = await burst(this.#requester, this.#launcher, COUNT);
    this.#cpu.push(one.cpuMsPerRequest);
    this.#packets.push(this.#tap.counts().packets / COUNT);
    this.#subOperations.push(this.#tap.counts().subOperations / COUNT);
    await drain(this.#server, this.#requester, one, this.#contents.nodes);
  }

  figure(): Figure {
    return {
      scenario: "full-tree",
      ...this.#contents,
      bursts: this.#cpu.length,
      cpuMsPerRequest: round(median(this.#cpu), 3),
      cpuMsLeast: round(Math.min(...this.#cpu), 3),
      cpuMsMost: round(Math.max(...this.#cpu), 3),
      packetsPerRequest: round(median(this.#packets)),
      subOperationsPerRequest: round(median(this.#subOperations)),
      peakMemoryMib: this.#launcher.peakMemoryMib(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
