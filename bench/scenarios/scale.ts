import { run } from "../../testing/browser/index.ts";
import { launcherConfig } from "../lib/config.ts";
import { type LauncherProcess, startLauncher } from "../lib/launcher.ts";
import { LABEL } from "../lib/records.ts";
import { nodesLeft, Requester } from "../lib/requester.ts";
import type { Figure, Scenario } from "../lib/scenario.ts";
import { type Server, startServer } from "../lib/server.ts";
import { median, round } from "../lib/statistics.ts";
import { fillTree } from "../lib/tree-contents.ts";

const SIZES = [1_000, 10_000, 100_000];
const WARM_UP = 60;
const SAMPLES = 30;
const LIMIT_MS = 300_000;
/** Longer than the shortest pause between two comparisons of a launcher with the tree, jitter included. */
const IDLE_MS = 75_000;
/** Figures that may grow as the tree does, and no faster. */
const LINEAR = ["startMs", "startCpuMs", "memoryMib", "idleCpuMs", "listMs", "pageMs", "pageMib"] as const;

export const scale: Scenario = {
  name: "scale",
  about:
    "1,000 and 10,000 nodes with half as many waiting requests (--nodes 100000 --launchers 10: the largest): start, memory, latency, idling, list and page",
  async *run({ nodes: most, launchers }): AsyncGenerator<Figure> {
    await using empty = await Side.start(0, launchers);
    let before: (Figure & { readonly nodes: number }) | undefined;
    for (const nodes of SIZES.filter((size) => size <= most)) {
      await using full = await Side.start(nodes, launchers);
      const figure = { scenario: "scale", launchers, nodes, ...(await measure(empty, full)) };
      yield { ...figure, ...(before !== undefined && growth(before, figure)) };
      before = figure;
    }
  },
};

/** How much more each figure is than that of the tree before, divided by how much larger the tree is: 1 is linear. */
function growth(before: Figure & { readonly nodes: number }, now: Figure & { readonly nodes: number }) {
  const larger = now.nodes / before.nodes;
  const ratios = LINEAR.map((field) => Number(now[field]) / Number(before[field]) / larger);
  return {
    ...Object.fromEntries(LINEAR.map((field, at) => [`${field}Growth`, round(ratios[at]!, 3)])),
    mostGrowth: round(Math.max(...ratios), 3),
  };
}

async function measure(empty: Side, full: Side) {
  const [base, own]: [number[], number[]] = [[], []];
  for (let sample = -WARM_UP; sample < SAMPLES; sample++) {
    // In turn, so that other load of the machine falls on both.
    const [one, other] = [await empty.request(), await full.request()];
    if (sample < 0) continue;
    base.push(one);
    own.push(other);
  }
  const shown = await full.shown();
  return {
    fillSeconds: round(full.fillMs / 1_000),
    startMs: round(full.startMs),
    startCpuMs: round(full.startCpuMs),
    latencyMs: median(own),
    emptyLatencyMs: median(base),
    latencyRatio: round(median(own) / median(base), 3),
    ...shown,
    idleCpuMs: round(await full.idle()),
    memoryMib: full.launcher.peakMemoryMib(),
  };
}

/** A server with launchers at it, one of which is looked at. */
class Side implements AsyncDisposable {
  readonly #parts: AsyncDisposableStack;
  readonly #server: Server;
  readonly #requester: Requester;
  readonly #nodes: number;
  readonly launcher: LauncherProcess;
  readonly fillMs: number;
  readonly startMs: number;
  readonly startCpuMs: number;

  private constructor(
    parts: AsyncDisposableStack,
    server: Server,
    requester: Requester,
    launcher: LauncherProcess,
    nodes: number,
    fillMs: number,
  ) {
    this.#parts = parts;
    this.#server = server;
    this.#requester = requester;
    this.launcher = launcher;
    this.#nodes = nodes;
    this.fillMs = fillMs;
    this.startMs = launcher.startMs;
    this.startCpuMs = launcher.cpuMs();
  }

  /** The last launcher to start is the one that is looked at: the others are at work already. */
  static async start(nodes: number, launchers: number): Promise<Side> {
    await using parts = new AsyncDisposableStack();
    const server = parts.use(await startServer());
    const began = performance.now();
    await fillTree(server.client, { nodes, requests: nodes / 2, elsewhere: true, waits: true });
    const fillMs = performance.now() - began;
    const started: LauncherProcess[] = [];
    for (let number = 1; number <= launchers; number++) {
      const config = launcherConfig({ ...server, name: `fake-${number}`, waits: true });
      started.push(parts.use(await startLauncher(server.client, config, 1, { web: number === launchers })));
    }
    const requester = await Requester.open(server.client);
    return new Side(parts.move(), server, requester, started.at(-1)!, nodes, fillMs);
  }

  /** Milliseconds from a request of one node until it is fulfilled, by the tree's own times. */
  async request(): Promise<number> {
    const [result] = await this.#requester.fulfilled(await this.#requester.submit(LABEL, 1), LIMIT_MS);
    await this.#requester.giveBack([result!]);
    await nodesLeft(this.#server.client, this.#nodes, LIMIT_MS);
    return result!.fulfilledAt - result!.createdAt;
  }

  /** What a program gets that lists all nodes, and what a page gets before it shows them. */
  async shown() {
    const words = ["token", "create", "bench", "--role", "viewer", "--json"];
    const { token } = JSON.parse(await run("-c", this.launcher.config, ...words)) as {
      readonly token: string;
    };
    const headers = { authorization: `Bearer ${token}` };
    const list = await fetched(`${this.launcher.address}/node-list`, {
      ...headers,
      accept: "application/json",
    });
    const page = await fetched(
      `${this.launcher.address}/v1/events?newest=true&nulls=false`,
      headers,
      "event: synced",
    );
    return {
      ...{ listMs: round(list.ms), listMib: round(list.mib) },
      ...{ pageMs: round(page.ms), pageMib: round(page.mib, 3) },
    };
  }

  /** CPU milliseconds of a launcher that has nothing to do: of a small tree one comparison with it is among them. */
  async idle(): Promise<number> {
    const cpu = this.launcher.cpuMs();
    await new Promise((resolve) => setTimeout(resolve, IDLE_MS));
    return this.launcher.cpuMs() - cpu;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}

/** A reply as far as `until`, or whole. */
async function fetched(url: string, headers: Readonly<Record<string, string>>, until?: string) {
  const began = performance.now();
  const reply = await fetch(url, { headers });
  if (!reply.ok) throw new Error(`${url}: ${reply.status} ${await reply.text()}`);
  const reader = reply.body!.getReader();
  const text = new TextDecoder();
  let bytes = 0;
  let end = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    bytes += value.length;
    end = end.slice(-64) + text.decode(value, { stream: true });
    if (until !== undefined && end.includes(until)) break;
  }
  await reader.cancel();
  return { ms: performance.now() - began, mib: bytes / 2 ** 20 };
}
