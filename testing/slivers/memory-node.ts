import { type Clock, seededRandom, sleep } from "@nodeyard/runtime";
import {
  type Capacity,
  createHandler,
  type Handler,
  Manager,
  POLICIES,
  parseRequest,
  Store,
} from "@nodeyard/sliver";
import { type KeySet, SliverClient, SliverUnreachableError } from "@nodeyard/sliver-protocol";
import { MemoryBackEnd } from "./memory-back-end.ts";
import { PowerLossFiles } from "./power-loss-files.ts";

export interface MemoryNodeOptions {
  readonly name: string;
  readonly clock: Clock;
  readonly keySet: KeySet;
  readonly capacity?: Capacity;
}

/** The fate of one call: it and its answer arrive, or one of the two is lost. */
export type Fate = "answered" | "answer lost" | "lost";

/** A sliver host in memory: the real manager and API over an in-memory back end. Machine and disk outlive the manager. */
export class MemoryNode {
  readonly machine = new MemoryBackEnd();
  readonly files = new PowerLossFiles();
  readonly errors: string[] = [];
  /** Asked for each call. */
  fate: (method: string) => Fate = () => "answered";
  /** Milliseconds that a call takes to arrive. */
  latencyMs = 0;
  /** Resolves when the last start is done. */
  started: Promise<void> = Promise.resolve();
  readonly #options: MemoryNodeOptions;
  #handler: Handler | undefined;
  #manager: Manager | undefined;

  constructor(options: MemoryNodeOptions) {
    this.#options = options;
  }

  /** Resolves when it can be called. */
  start(): Promise<void> {
    this.started = this.#start();
    return this.started;
  }

  async #start(): Promise<void> {
    const { name, clock, keySet, capacity } = this.#options;
    const store = new Store(this.files, name);
    const { state } = await store.load();
    const policy = POLICIES.v2;
    const manager = new Manager({
      node: name,
      store,
      state: state.keySet === undefined ? { ...state, keySet } : state,
      backEnd: this.machine,
      machine: { policy, cpu: 4000, link: 1_000_000_000, siblings: [], highestIndex: 64 },
      capacity: capacity ?? {},
      clock,
      random: seededRandom(1),
      log: { info: () => undefined, error: (text) => void this.errors.push(text) },
    });
    this.#handler = createHandler(manager, "v2", () => undefined);
    this.#manager = manager;
    manager.requestSync();
  }

  /** Stops the manager; its slivers keep running. */
  kill(): void {
    this.#handler = undefined;
    void this.#manager?.close();
    this.#manager = undefined;
  }

  /** As the launcher's control account calls. */
  get client(): SliverClient {
    return new SliverClient(async (body, signal) => {
      const fate = this.fate((JSON.parse(body) as { method: string }).method);
      const lost = () => new SliverUnreachableError(`${this.#options.name} does not answer`);
      if (this.latencyMs > 0) await sleep(this.#options.clock, this.latencyMs, signal);
      if (this.#handler === undefined || fate === "lost") throw lost();
      const call = this.#handler(parseRequest({ method: "POST", path: "/json", body }), {
        account: "control",
        role: "control",
        generation: 0,
      });
      const answer = await Promise.race([call, aborted(signal)]);
      if (answer === undefined || fate === "answer lost") throw lost();
      return answer.body;
    });
  }

  /** Names of slivers that run. */
  get running(): string[] {
    return [...this.machine.made.values()]
      .flatMap(({ config, phase }) => (phase === "running" ? [config.name] : []))
      .sort();
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}
