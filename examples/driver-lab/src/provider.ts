import type { ChildProcess } from "node:child_process";
import {
  type Clock,
  type CreateOrder,
  DriverError,
  type ExternalId,
  type InventoryItem,
  type LabelConfig,
  type Machine,
  type ProbeResult,
  type Provider,
  type Resource,
  type Resources,
  type Step,
  type StepContext,
  sleep,
  type Tag,
} from "@nodeyard/driver";
import type { LabLabelOwn, LabProviderConfig } from "./config.ts";
import type { BoardState, Boards } from "./edge/boards.ts";
import { mapError } from "./errors.ts";
import { boardName, tagOf } from "./name.ts";

const STEP_MS = 10_000;
const POLL_MS = 20;
const ONE: Resources = { instances: 1 };

type Running = Extract<BoardState, { readonly state: "running" }>;

/** One folder of boards. It remembers nothing: all there is to know is in the folder. */
export class LabProvider implements Provider {
  readonly #boards: Boards;
  readonly #config: LabProviderConfig;
  readonly #clock: Clock;
  #closed = false;

  constructor(boards: Boards, config: LabProviderConfig, clock: Clock) {
    this.#boards = boards;
    this.#config = config;
    this.#clock = clock;
  }

  async *create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void> {
    const name = boardName(order.tag);
    const { signal } = context;
    const saved = context.externalId === name ? {} : { save: { externalId: name } };
    yield { step: "folder", deadlineMs: STEP_MS, ...saved };
    await this.#call("create", signal, () => this.#claim(name));

    yield { step: "start", deadlineMs: STEP_MS };
    const child = await this.#call("create", signal, () => this.#start(name, order));

    yield { step: "boot", deadlineMs: this.#config.launchTimeoutMs };
    return describe(name, order, await this.#booted(name, child, signal));
  }

  async *remove(tag: Tag, { signal }: StepContext): AsyncGenerator<Step, void, void> {
    // The tag says all: an id from an older version, or of another node, is not even looked at.
    const name = boardName(tag);
    yield { step: "stop", deadlineMs: STEP_MS };
    await this.#stop(name, signal);

    yield { step: "discard", deadlineMs: STEP_MS };
    await this.#call("remove", signal, () => this.#boards.discard(name));
  }

  async find(tag: Tag, signal: AbortSignal): Promise<ExternalId | undefined> {
    const name = boardName(tag);
    return (await this.#call("find", signal, () => this.#boards.has(name))) ? name : undefined;
  }

  async list(signal: AbortSignal): Promise<readonly Resource[]> {
    const names = await this.#call("list", signal, () => this.#boards.names());
    return names.map((name) => ({ type: "instance", id: name, tag: tagOf(name), resources: ONE }));
  }

  async removeResource({ tag }: Resource, signal: AbortSignal): Promise<void> {
    if (tag === null) return;
    await this.#stop(boardName(tag), signal);
    await this.#call("removeResource", signal, () => this.#boards.discard(boardName(tag)));
  }

  async quota(signal: AbortSignal): Promise<Resources> {
    const { maxBoards } = this.#config.own;
    return this.#call("quota", signal, async () =>
      Number.isFinite(maxBoards) ? { instances: maxBoards } : {},
    );
  }

  async need(_label: LabelConfig, signal: AbortSignal): Promise<Resources> {
    return this.#call("need", signal, async () => ONE);
  }

  inventory(): readonly InventoryItem[] {
    return [];
  }

  async probe(): Promise<ProbeResult> {
    return { alive: false, why: "the lab driver has no inventory" };
  }

  async close(): Promise<void> {
    this.#closed = true;
  }

  /** Counted after it was made: two at once may both be refused, but there is never one too many. */
  async #claim(name: string): Promise<void> {
    const { maxBoards, folder } = this.#config.own;
    if (!(await this.#boards.claim(name))) return;
    if ((await this.#boards.names()).length <= maxBoards) return;
    await this.#boards.discard(name);
    throw new DriverError("quota", `${this.#config.name}: ${folder} has ${maxBoards} boards (max-boards)`);
  }

  /** The process that was started; undefined when the board ran already. */
  async #start(name: string, { hostname, label }: CreateOrder): Promise<ChildProcess | undefined> {
    const { state } = await this.#boards.state(name);
    switch (state) {
      case "running":
        return undefined;
      case "idle":
        return this.#boards.start(name, { hostname, greeting: (label.own as LabLabelOwn).greeting });
      case "absent":
        throw new DriverError("not-found", `${this.#config.name}: the folder of ${hostname} was removed`);
      default:
        return state satisfies never;
    }
  }

  async #booted(name: string, child: ChildProcess | undefined, signal: AbortSignal): Promise<Running> {
    for (;;) {
      // Asked first: a process that ends may have found another that runs.
      const ended = child !== undefined && (child.exitCode !== null || child.signalCode !== null);
      const board = await this.#call("create", signal, () => this.#boards.state(name));
      if (board.state === "running") return board;
      if (ended)
        throw new DriverError("transient", `board ${name} ended: ${await this.#boards.lastLine(name)}`);
      await sleep(this.#clock, POLL_MS, signal);
    }
  }

  async #stop(name: string, signal: AbortSignal): Promise<void> {
    await this.#call("stop", signal, () => this.#boards.stop(name));
    while ((await this.#call("stop", signal, () => this.#boards.state(name))).state === "running")
      await sleep(this.#clock, POLL_MS, signal);
  }

  /** Errors are DriverErrors from here on, or the reason of the caller who gave up. */
  async #call<T>(place: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    signal.throwIfAborted();
    if (this.#closed) throw new DriverError("transient", `provider ${this.#config.name} is closed`);
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw mapError(error, `${this.#config.name}: ${place}`);
    }
  }
}

function describe(name: string, { hostname }: CreateOrder, { port }: Running): Machine {
  return {
    externalId: name,
    interfaceIp: "127.0.0.1",
    publicIpv4: "127.0.0.1",
    privateIpv4: "127.0.0.1",
    hostname,
    resources: ONE,
    connection: { port },
  };
}
