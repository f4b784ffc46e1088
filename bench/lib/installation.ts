import { burst, drain } from "./burst.ts";
import { launcherConfig } from "./config.ts";
import { type LauncherProcess, startLauncher } from "./launcher.ts";
import { Requester } from "./requester.ts";
import { type Server, startServer } from "./server.ts";
import { median, round } from "./statistics.ts";
import { startTap, type Tap } from "./tap.ts";
import { type Contents, fillTree } from "./tree-contents.ts";

const WARM_UP = 2_000;
const COUNT = 500;

/** A server with a launcher, and the cost of its bursts of 500 requests. */
export class Installation implements AsyncDisposable {
  readonly server: Server;
  readonly launcher: LauncherProcess;
  readonly #contents: Contents;
  readonly #tap: Tap;
  readonly #requester: Requester;
  readonly #parts: AsyncDisposableStack;
  readonly #cpu: number[] = [];
  readonly #packets: number[] = [];
  readonly #subOperations: number[] = [];

  private constructor(
    contents: Contents,
    parts: AsyncDisposableStack,
    server: Server,
    tap: Tap,
    launcher: LauncherProcess,
    requester: Requester,
  ) {
    this.#contents = contents;
    this.#parts = parts;
    this.server = server;
    this.#tap = tap;
    this.launcher = launcher;
    this.#requester = requester;
  }

  /** With these contents in its tree, and warm. `web`: whether its launcher listens for browsers. */
  static async start(contents: Contents, { web = false }: { readonly web?: boolean } = {}) {
    await using parts = new AsyncDisposableStack();
    const server = parts.use(await startServer());
    await fillTree(server.client, contents);
    const tap = parts.use(await startTap(server.address));
    const launcher = parts.use(await startLauncher(server.client, launcherConfig(tap), 1, { web }));
    const requester = await Requester.open(server.client);
    await drain(server, requester, await burst(requester, launcher, WARM_UP), contents.nodes);
    return new Installation(contents, parts.move(), server, tap, launcher, requester);
  }

  async burst(): Promise<void> {
    this.#tap.reset();
    const one = await burst(this.#requester, this.launcher, COUNT);
    this.#cpu.push(one.cpuMsPerRequest);
    this.#packets.push(this.#tap.counts().packets / COUNT);
    this.#subOperations.push(this.#tap.counts().subOperations / COUNT);
    await drain(this.server, this.#requester, one, this.#contents.nodes);
  }

  /** Of all bursts so far. */
  costs(): Readonly<Record<string, number>> {
    const { nodes, requests } = this.#contents;
    return {
      ...{ nodes, requests },
      bursts: this.#cpu.length,
      cpuMsPerRequest: round(median(this.#cpu), 3),
      cpuMsLeast: round(Math.min(...this.#cpu), 3),
      cpuMsMost: round(Math.max(...this.#cpu), 3),
      packetsPerRequest: round(median(this.#packets)),
      subOperationsPerRequest: round(median(this.#subOperations)),
      peakMemoryMib: this.launcher.peakMemoryMib(),
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }
}
