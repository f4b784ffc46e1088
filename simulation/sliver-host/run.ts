import { isDeepStrictEqual } from "node:util";
import { type Random, seededRandom, VirtualClock } from "@nodeyard/runtime";
import {
  compareVersions,
  Manager,
  type ManagerOptions,
  POLICIES,
  SignedSource,
  type State,
  Store,
  sync,
} from "@nodeyard/sliver";
import type { SliverSpecInput } from "@nodeyard/sliver-protocol";
import { MemoryBackEnd } from "../../testing/slivers/memory-back-end.ts";
import { PowerLossFiles } from "../../testing/slivers/power-loss-files.ts";
import { Broken } from "../checks/index.ts";
import type { Fault } from "../faults.ts";
import { between } from "../streams.ts";
import { DocumentServer } from "./document-server.ts";

const NAMES = ["ada", "bob", "cyd", "dan", "eve"] as const;
const STEPS = 24;
const PERIOD_MS = 10_000;
/** Thousandths of a CPU that the machine has for guarantees: fewer than all slivers together may ask for. */
const CPU = 2_000;
/** Slivers that are kept ready: more than the machine has room for beside all of the documents'. */
const SPARES = 4;
/** Time for a last document, and for every failed step to be retried. */
const QUIET_MS = 1_800_000;

interface Options {
  readonly seed: number;
  readonly random: Random;
  readonly count: (fault: Fault) => void;
}

/**
 * One sliver host under a seed: the manager's core, its store on a disk that loses data that was not synced, and a launcher's documents
 * from a server that lies. Throws `Broken` when a rule does not hold.
 */
export async function simulateSliverHost(options: Options): Promise<void> {
  const host = new SliverHost(options);
  await host.start();
  for (let step = 0; step < STEPS; step++) await host.step();
  await host.end();
}

class SliverHost {
  readonly #random: Random;
  readonly #count: (fault: Fault) => void;
  readonly #clock = new VirtualClock();
  readonly #machine = new MemoryBackEnd();
  readonly #files = new PowerLossFiles();
  readonly #server: DocumentServer;
  readonly #seed: number;
  #failing = 0;
  #manager: Manager | undefined;
  #source: SignedSource | undefined;
  /** The slivers at the last look. */
  #before: Pick<State, "minimum" | "records"> = { minimum: { epoch: 0, number: 0 }, records: new Map() };
  /** A broken rule that a check inside of the machine found. */
  #broken: Broken | undefined;

  constructor({ seed, random, count }: Options) {
    this.#seed = seed;
    this.#random = random;
    this.#count = count;
    this.#server = new DocumentServer(
      random,
      () => Math.floor(this.#clock.now() / 1000),
      () => count("document server lies"),
    );
    this.#machine.disturb = async (step, { incarnation }, signal) => {
      if (step === "destroy") this.#checkDestroy(incarnation);
      if (random.float() >= this.#failing) return;
      count("sliver step fails");
      if (random.float() < 0.5) throw new Error("as injected");
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    };
  }

  /** A manager as after a start of the process; the one before died. */
  async start(): Promise<void> {
    await this.#stop();
    const store = new Store(this.#files, "node-1");
    const { state } = await store.load();
    // Enrolment gives a node the keys that it trusts.
    const enrolled = state.keySet === undefined ? { ...state, keySet: this.#server.keySet } : state;
    const quiet = () => undefined;
    const options: ManagerOptions = {
      node: "node-1",
      store,
      state: enrolled,
      backEnd: this.#machine,
      machine: {
        ...{ policy: POLICIES.r0, cpu: 4_000, link: 1_000_000_000, siblings: [], highestIndex: 8 },
        spares: SPARES,
      },
      capacity: { cpu: CPU },
      clock: this.#clock,
      random: seededRandom(this.#seed),
      log: { info: quiet, error: quiet },
    };
    const manager = new Manager(options);
    const { clock, random, log } = options;
    this.#manager = manager;
    this.#source = new SignedSource({ manager, place: this.#server, clock, random, log, period: PERIOD_MS });
    manager.requestSync();
    this.#source.start();
    await this.#pass(1_000);
    this.#checkVersion();
  }

  async step(): Promise<void> {
    const kinds = [
      () => this.#publish(),
      () => this.#publish(),
      () => this.#rotate(),
      () => this.#losePower(),
      () => this.#restart(),
      () => this.#change(),
    ];
    await kinds[Math.floor(this.#random.float() * kinds.length)]!();
    await this.#pass(between(this.#random, 1, 30_000));
    this.#check();
  }

  /** No more faults: the host becomes as the last document says, and stays so. */
  async end(): Promise<void> {
    this.#failing = 0;
    this.#server.lies = 0;
    await this.#publish();
    await this.#pass(QUIET_MS);
    this.#check();
    const { state, options } = this.#manager!;
    const last = this.#server.published.at(-1)!;
    if (compareVersions(state.minimum, { epoch: last.epoch, number: last.version }) !== 0)
      throw this.#because("the last document is obeyed", JSON.stringify(state.minimum));
    const found = [...this.#machine.made.values()].map(({ config, phase }) => `${config.name} ${phase}`);
    const wanted = [...state.records.keys(), ...state.spares.map(({ name }) => name)].map(
      (name) => `${name} running`,
    );
    if (found.sort().join() !== wanted.sort().join())
      throw this.#because("a host is as its document says", `${found}, not ${wanted}`);
    for (const { config, applied } of this.#machine.made.values()) {
      const record = state.records.get(config.name);
      if (record === undefined) continue;
      const { index, incarnation } = record.local;
      const made = [config.index, config.generation, config.incarnation, applied?.effective];
      const asked = [
        index,
        record.generation,
        incarnation,
        this.#manager!.result?.effective.get(config.name),
      ];
      if (!isDeepStrictEqual(made, asked))
        throw this.#because("a host is as its document says", `${config.name} is ${JSON.stringify(made)}`);
    }
    if (sync(state, await this.#machine.inspect(), options.machine, 0).tasks.length > 0)
      throw this.#because("a sync that is run twice changes nothing the second time", "there are tasks");
    await this.#stop();
  }

  async #stop(): Promise<void> {
    const [manager, source] = [this.#manager, this.#source];
    this.#manager = undefined;
    const closed = Promise.all([source?.close(), manager?.close()]);
    await this.#pass(90_000);
    await closed;
  }

  async #publish(): Promise<void> {
    const random = this.#random;
    const slivers = NAMES.filter(() => random.float() < 0.7).map((name): SliverSpecInput => {
      const version = this.#server.published.length;
      const rspec = { cpuGuarantee: Math.floor(random.float() * 900), cpuShare: 16 + (version % 64) };
      // The lender's list says whom it lends how much of its share.
      const loans = [
        {
          to: NAMES[version % NAMES.length]!,
          resource: "cpuShare" as const,
          amount: Math.floor(random.float() * 60),
        },
      ];
      const generation = Math.floor(version / 4);
      return { name, generation, instantiation: "plc-instantiated", rspec, loans };
    });
    this.#server.publish(slivers, random.float() < 0.15);
  }

  async #rotate(): Promise<void> {
    this.#count("signing key changes");
    this.#server.rotate();
    await this.#publish();
  }

  async #losePower(): Promise<void> {
    this.#count("sliver host without power");
    this.#files.failAt = this.#files.calls + 1 + Math.floor(this.#random.float() * 8);
    await this.#publish();
    await this.#pass(between(this.#random, 1, 15_000));
    await this.#stop();
    this.#files.powerLoss(this.#random);
    await this.start();
  }

  async #restart(): Promise<void> {
    this.#count("sliver manager dies");
    await this.start();
  }

  async #change(): Promise<void> {
    this.#failing = this.#random.float() < 0.5 ? 0 : this.#random.float() * 0.6;
    this.#server.lies = this.#random.float() < 0.4 ? 0 : this.#random.float() * 0.8;
  }

  #check(): void {
    if (this.#broken !== undefined) throw this.#broken;
    this.#checkVersion();
    const { state } = this.#manager!;
    this.#checkGenuine(state);
    this.#checkSame(state);
    this.#before = state;
    const guaranteed = [...state.records.values()].reduce((sum, { rspec }) => sum + rspec.cpuGuarantee, 0);
    if (guaranteed > CPU)
      throw this.#because("guarantees never sum above the machine", `${guaranteed} of ${CPU}`);
    if (this.#machine.overlaps > 0) throw this.#because("a sliver has one step at a time", "two at once");
    for (const [lender, { share, floor }] of this.#shares())
      if (share < floor) throw this.#because("a loan leaves the lender its floor", `${lender}: ${share}`);
  }

  /** State that a node has reported survives any crash and power loss. */
  #checkVersion(): void {
    const { minimum } = this.#manager!.state;
    if (compareVersions(minimum, this.#server.acknowledged) < 0) {
      const what = `${JSON.stringify(minimum)} after ${JSON.stringify(this.#server.acknowledged)}`;
      throw this.#because("what was acknowledged survives", what);
    }
  }

  /** Only signed documents take effect: the slivers are those of the document whose version the node has. */
  #checkGenuine({ minimum, records, refused }: State): void {
    if (minimum.epoch === 0) return;
    const obeyed = this.#server.published.find(
      ({ epoch, version }) => epoch === minimum.epoch && version === minimum.number,
    );
    if (obeyed === undefined)
      throw this.#because("only signed documents are obeyed", JSON.stringify(minimum));
    const turnedAway = new Set(refused.map(({ name }) => name));
    const listed = obeyed.slivers.map(({ name }) => name);
    for (const name of records.keys())
      if (!listed.includes(name)) throw this.#because("only signed documents are obeyed", `${name} is there`);
    for (const name of listed)
      if (!records.has(name) && !turnedAway.has(name))
        throw this.#because("what a document lists stays", `${name} is gone`);
  }

  /** A sliver that every document since the last look has listed with the same generation must be the same one. */
  #checkSame({ minimum, records }: State): void {
    const { minimum: from, records: before } = this.#before;
    const since = this.#server.published.filter(({ epoch, version }) => {
      const one = { epoch, number: version };
      return compareVersions(one, from) > 0 && compareVersions(one, minimum) <= 0;
    });
    for (const [name, { generation, local }] of before) {
      // Nothing was made yet for a sliver without a place: a spare may become it, with the spare's number.
      if (local.index === undefined) continue;
      const listed = since.every(({ slivers }) =>
        slivers.some((one) => one.name === name && one.generation === generation),
      );
      if (listed && records.get(name)?.local.incarnation !== local.incarnation)
        throw this.#because("what a document lists stays", `${name} is another than before`);
    }
  }

  /** Called before a sliver is removed: that is right only if the state no longer has this incarnation. */
  #checkDestroy(incarnation: number): void {
    const kept = [...(this.#manager?.state.records.values() ?? [])].find(
      ({ local }) => local.incarnation === incarnation,
    );
    if (kept !== undefined)
      this.#broken ??= this.#because("what a document lists stays", `${kept.name} is destroyed`);
  }

  #shares(): readonly [string, { readonly share: number; readonly floor: number }][] {
    const { result } = this.#manager!;
    const floor = POLICIES.r0.minimums.cpuShare ?? 0;
    return [...(result?.effective ?? [])].map(([name, rspec]) => [
      name,
      {
        share: rspec.cpuShare,
        floor: Math.min(floor, this.#manager!.state.records.get(name)?.rspec.cpuShare ?? 0),
      },
    ]);
  }

  #because(rule: string, what: string): Broken {
    return new Broken(rule, undefined, `sliver host: ${what}`);
  }

  async #pass(ms: number): Promise<void> {
    await this.#clock.advance(ms);
    for (let turn = 0; turn < 20; turn++) await this.#clock.advance(0);
  }
}
