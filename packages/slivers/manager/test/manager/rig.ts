import { seededRandom, VirtualClock } from "@nodeyard/runtime";
import { MemoryBackEnd } from "../../../../../testing/slivers/memory-back-end.ts";
import { PowerLossFiles } from "../../../../../testing/slivers/power-loss-files.ts";
import type { Capacity } from "../../src/core/capacity.ts";
import type { Delivery } from "../../src/core/deliver.ts";
import { POLICIES } from "../../src/core/profiles.ts";
import { EMPTY_STATE, type Incoming, type State } from "../../src/core/record.ts";
import type { BackEnd } from "../../src/isolation/contract.ts";
import { takeDocument } from "../../src/manager/documents.ts";
import { Manager, type ManagerOptions } from "../../src/manager/manager.ts";
import { Store } from "../../src/store/store.ts";
import { incoming } from "../core/arbitrary.ts";

const MANY = 1000;

/** A node: a machine and a disk that outlive managers, and a clock that moves when told to. */
export class Rig {
  readonly machine = new MemoryBackEnd();
  readonly files = new PowerLossFiles();
  readonly clock = new VirtualClock();
  readonly log: string[] = [];
  manager!: Manager;
  #running: Manager | undefined;
  #more: Partial<ManagerOptions>;

  constructor(more: Partial<ManagerOptions> = {}) {
    this.#more = more;
  }

  /** A manager as after a start of the process; the one before is gone without a word. */
  async start(): Promise<Manager> {
    await this.kill();
    const store = new Store(this.files, "node-1");
    const { state } = await store.load();
    const log = (text: string) => void this.log.push(text);
    this.manager = new Manager({
      node: "node-1",
      store,
      state,
      backEnd: this.machine as BackEnd,
      machine: { policy: POLICIES.r0, cpu: 4000, link: 1_000_000_000, siblings: [], highestIndex: 8 },
      capacity: {} as Capacity,
      clock: this.clock,
      random: seededRandom(1),
      log: { info: log, error: log },
      ...this.#more,
    });
    this.#running = this.manager;
    this.manager.requestSync();
    await this.settle();
    return this.manager;
  }

  /** Work under way has no effect any more, and nothing is written. */
  async kill(): Promise<void> {
    const old = this.#running;
    this.#running = undefined;
    if (old === undefined) return;
    const closed = old.close();
    await this.pass(30_000);
    await closed;
  }

  /** Lets everything that needs no time happen. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) await this.clock.advance(0);
  }

  async pass(ms: number): Promise<void> {
    await this.clock.advance(ms);
    await this.settle();
  }

  deliver(number: number, records: readonly Incoming[], more: Partial<Delivery> = {}): Promise<void> {
    const version = { epoch: 0, number };
    const delivery = { version, digest: "", records, malformed: [], removes: MANY, ...more };
    return takeDocument(this.manager, () => delivery).then(() => this.settle());
  }

  list(number: number, ...names: string[]): Promise<void> {
    return this.deliver(
      number,
      names.map((one) => incoming(one, number)),
    );
  }

  /** `name:phase` of what is on the machine. */
  get found(): string[] {
    return [...this.machine.made.values()].map(({ config, phase }) => `${config.name}:${phase}`).sort();
  }

  get state(): State {
    return this.manager?.state ?? EMPTY_STATE;
  }
}
