import type { Driver, ProviderConfig, Scanner, Tag } from "@nodeyard/driver";
import { createFakeDriver, FakeCloud, type FakeKnobs, fakeConfig, INSTANT } from "@nodeyard/driver-fake";
import { createMetastaticDriver, metastaticDriver, type SliverAccess } from "@nodeyard/driver-metastatic";
import { staticDriver } from "@nodeyard/driver-static";
import { paths } from "@nodeyard/model";
import { explain, queryMembers, type Story } from "@nodeyard/operations";
import { type Clock, seededRandom, VirtualClock } from "@nodeyard/runtime";
import {
  Counters,
  type Journal,
  journalEvents,
  memoryJournal,
  memoryLog,
  NODE_FIELDS,
} from "@nodeyard/telemetry";
import {
  type CallInfo,
  createMemoryTree,
  type Fault,
  type MemoryCluster,
  type MemoryTree,
} from "@nodeyard/tree";
import { holderOf } from "@nodeyard/zookeeper";
import { Launcher, type LauncherConfig, type RunCheck } from "../../src/index.ts";

export { fakeProvider, LABELS, launcherConfig, staticProvider } from "../rig.ts";

export type Json = Record<string, unknown>;

/** One launcher process of a world, with its own session and its own view of time. */
export interface Member {
  readonly name: string;
  readonly tree: MemoryTree;
  readonly launcher: Launcher;
  readonly log: ReturnType<typeof memoryLog>;
  readonly counters: Counters;
  readonly journal: ReturnType<typeof memoryJournal>;
}

export interface MemberOptions {
  readonly wrap?: (driver: Driver) => Driver;
  readonly clock?: Clock;
  readonly sessionTimeoutMs?: number;
  readonly scan?: Scanner;
  readonly slivers?: SliverAccess;
  readonly check?: RunCheck;
}

const answers: Scanner = { scan: async ({ host }) => ({ address: host, family: 4, hostKeys: [] }) };

/** Launchers, a fake cloud and a tree that tears, delays and loses on demand, all in virtual time. */
export class World {
  readonly clock: VirtualClock;
  readonly cluster: MemoryCluster;
  readonly cloud: FakeCloud;
  /** A client without faults: Zuul, an operator, whoever interferes. */
  readonly other: MemoryTree;
  /** Asked for each call of a launcher. */
  fault: (call: CallInfo) => Fault = () => undefined;
  /** Whether an event for this client never arrives; the next comparison with the tree makes up for it. */
  losesEvent: (client: string, path: string) => boolean = () => false;
  readonly members: Member[] = [];
  readonly #second: boolean;

  /** `before`: a world whose cloud and time this one shares, with a tree of its own. */
  constructor(knobs: Partial<FakeKnobs> = {}, before?: World) {
    this.#second = before !== undefined;
    this.clock = before?.clock ?? new VirtualClock();
    this.cluster = createMemoryTree({
      clock: this.clock,
      random: seededRandom(before === undefined ? 1 : 101),
      latencyMs: [1, 4],
      faults: (call) => (call.client === "other" ? undefined : this.fault(call)),
      losesEvent: (client, path) => this.losesEvent(client, path),
    });
    this.cloud =
      before?.cloud ??
      new FakeCloud({
        // Another machine's: it does not jump with ours.
        clock: {
          now: () => 1_700_000_000_000 + this.clock.monotonic(),
          monotonic: () => this.clock.monotonic(),
          setTimer: (ms, fn) => this.clock.setTimer(ms, fn),
        },
        random: seededRandom(2),
        knobs: { ...INSTANT, quota: {}, ...knobs },
      });
    this.other = this.cluster.connect({ name: "other", sessionTimeoutMs: 600_000, latencyMs: [0, 0] });
  }

  /** Starts a launcher without waiting for it. */
  launch(name: string, config: LauncherConfig, options: MemberOptions = {}) {
    const { clock = this.clock, sessionTimeoutMs = 10_000 } = options;
    const tree = this.cluster.connect({ name, sessionTimeoutMs, clock });
    const fake = createFakeDriver({ config: fakeConfig, cloudOf: () => this.cloud }) as unknown as Driver;
    const [log, counters, journal] = [memoryLog(), new Counters(), memoryJournal(1_000)];
    const declared: Journal = {
      write(event) {
        const known: readonly string[] = [...journalEvents[event.event].facts, ...NODE_FIELDS];
        const strange = Object.keys(event.facts).filter((fact) => !known.includes(fact));
        if (strange.length > 0) throw new Error(`${event.event}: journalEvents lacks ${strange}`);
        journal.write(event);
      },
    };
    const { slivers } = options;
    const metastatic = slivers === undefined ? metastaticDriver : createMetastaticDriver(() => slivers);
    const wrap = options.wrap ?? ((driver) => driver);
    const starting = Launcher.start({
      tree,
      clock,
      random: seededRandom((this.#second ? 110 : 10) + this.members.length),
      scan: options.scan ?? answers,
      ...(options.check && { check: options.check }),
      log,
      journal: declared,
      counters,
      identity: { hostname: name, fqdn: `${name}.example`, version: "0" },
      driverOf: async (driver) => {
        if (driver === "metastatic") return metastatic as unknown as Driver;
        return wrap(driver === "static" ? (staticDriver as unknown as Driver) : fake);
      },
      config,
    }).then((launcher): Member => {
      const member = { name, tree, launcher, log, counters, journal };
      this.members.push(member);
      return member;
    });
    starting.catch(() => {});
    return { tree, log, counters, starting };
  }

  start(name: string, config: LauncherConfig, options: MemberOptions = {}): Promise<Member> {
    return this.settle(this.launch(name, config, options).starting);
  }

  run(ms: number): Promise<void> {
    return this.clock.advance(ms);
  }

  /** Moves time on until `promise` settles. */
  async settle<T>(promise: Promise<T>, limitMs = 120_000): Promise<T> {
    let done = false;
    const end = () => {
      done = true;
    };
    promise.then(end, end);
    for (let at = 0; !done; at += 5) {
      if (at > limitMs) throw new Error(`not settled within ${limitMs} ms of virtual time`);
      await this.run(5);
    }
    return promise;
  }

  /** Moves time on until `look` returns something. */
  async until<T>(what: string, look: () => T | undefined | false, limitMs = 60_000): Promise<T> {
    for (const limit = this.clock.monotonic() + limitMs; this.clock.monotonic() <= limit; ) {
      const found = look();
      if (found !== undefined && found !== false) return found;
      await this.#step(limit);
    }
    const lines = this.members.flatMap(({ name, log }) =>
      log.lines
        .slice(-12)
        .map((line) => `\n  ${name} ${line.level} ${line.text} ${JSON.stringify(line.facts)}`),
    );
    throw new Error(`it never happened within ${limitMs} ms of virtual time: ${what}${lines.join("")}`);
  }

  /** To the next timer, since nothing happens before it but what follows from the last one within five milliseconds, or without any. */
  #step(limit: number): Promise<void> {
    const left = limit - this.clock.monotonic();
    return this.run(5 + Math.max(0, Math.min(this.clock.untilNext, left, 1_000)));
  }

  /** What a znode holds now, as text; undefined where there is none. */
  text(path: string): string | undefined {
    const data = this.cluster.znodes.data(path);
    return data === undefined ? undefined : Buffer.from(data).toString();
  }

  json(path: string): Json | undefined {
    const text = this.text(path);
    return text === undefined || text === "" ? undefined : (JSON.parse(text) as Json);
  }

  request(id: string): Json | undefined {
    return this.json(paths.request(id));
  }

  node(id: string): Json | undefined {
    return this.json(paths.node(id));
  }

  children(path: string): string[] {
    return [...(this.cluster.znodes.children(path) ?? [])].sort();
  }

  nodes(): (Json & { id: string })[] {
    return this.children(paths.nodes).flatMap((id) => {
      const record = this.node(id);
      return record === undefined ? [] : [{ ...record, id }];
    });
  }

  /** Writes without a fence, as anybody may. */
  async put(path: string, value: unknown): Promise<void> {
    const data = Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
    await this.folder(path.slice(0, path.lastIndexOf("/")));
    if (this.cluster.znodes.stat(path) === undefined) await this.settle(this.other.create(path, data));
    else await this.settle(this.other.set(path, data));
  }

  async folder(path: string): Promise<void> {
    let at = "";
    for (const part of path.split("/").slice(1)) {
      at += `/${part}`;
      if (this.cluster.znodes.stat(at) === undefined) await this.settle(this.other.create(at));
    }
  }

  async ask(fields: Json | string = {}, prefix = "100"): Promise<string> {
    await this.folder(paths.requests);
    const base = {
      state: "requested",
      state_time: 1,
      node_types: ["small"],
      requestor: "test",
      event_id: "e",
    };
    const text = typeof fields === "string" ? fields : JSON.stringify({ ...base, ...fields });
    const { path } = await this.settle(
      this.other.create(`${paths.requests}/${prefix}-`, Buffer.from(text), { sequential: true }),
    );
    return path.slice(path.lastIndexOf("/") + 1);
  }

  /** What `explain` says of a thing that is there, without a journal. */
  async explain(kind: Story["kind"], id: string): Promise<Story> {
    const handles = { tree: this.other, clock: this.clock, random: seededRandom(1) };
    const query = queryMembers(handles, () => ({ events: [], problem: "no journal" }));
    return (await this.settle(explain(handles, { kind, id }, query)))!;
  }

  /** A Python launcher's pool, registered by a session that is no member of Nodeyard. Returns its path. */
  async pythonPool(provider: string, labels: readonly string[]): Promise<string> {
    const id = `old.example-PoolWorker.${provider}-main-0123`;
    const pool = { kind: "pool", hostname: "old", state: "running", model_api: 0, id, name: "main" };
    const offer = { provider_name: provider, supported_labels: labels, priority: 100, paused: false };
    const data = Buffer.from(JSON.stringify({ ...pool, ...offer }));
    await this.folder(paths.component("pool"));
    const at = `${paths.component("pool")}/old`;
    return (await this.settle(this.other.create(at, data, { ephemeral: true, sequential: true }))).path;
  }

  /** A machine that no launcher here made: with a tag of this installation but for what `tag` says, or without one. Returns its id. */
  async machine(
    name: string,
    tag: Partial<Tag> | null = {},
    resources: Readonly<Record<string, number>> = { instances: 1 },
  ) {
    const installation = (this.json("/nodeyard/installation")?.id as string) ?? "";
    const full = { installation, provider: "cloud", pool: "main", nodeId: name, ...tag };
    const order = { name, az: null, resources, networks: [], imageProperties: {} };
    const { signal } = new AbortController();
    return (await this.settle(this.cloud.create({ ...order, tag: tag && full }, signal))).id;
  }

  /** A node record as others make them: its id comes from the tree. */
  async makeNode(fields: Json): Promise<string> {
    await this.folder(paths.nodes);
    const data = Buffer.from(JSON.stringify({ state_time: 1, allocated_to: null, ...fields }));
    const { path } = await this.settle(this.other.create(`${paths.nodes}/`, data, { sequential: true }));
    return path.slice(path.lastIndexOf("/") + 1);
  }

  /** What Zuul does with a fulfilled request: locks its nodes, forgets it, uses them and gives them back as `used`. */
  async use(request: string): Promise<void> {
    const nodes = this.request(request)?.nodes as string[];
    const locks: string[] = [];
    for (const id of nodes) locks.push(await this.lock(paths.nodeLock(id)));
    await this.settle(this.other.delete(paths.request(request)));
    for (const state of ["in-use", "used"])
      for (const id of nodes) await this.put(paths.node(id), { ...this.node(id), state });
    for (const lock of locks) await this.settle(this.other.delete(lock));
  }

  /** Waits in line, as Zuul does: a launcher that lost a reply may still have a contender there, for a moment. */
  async lock(parent: string): Promise<string> {
    const path = await this.contend(parent);
    const first = () => holderOf(this.children(parent)) === path.slice(parent.length + 1);
    await this.until(`the lock ${parent} is free`, first, 5_000);
    return path;
  }

  async contend(parent: string, data?: Uint8Array): Promise<string> {
    await this.folder(parent);
    const options = { ephemeral: data === undefined, sequential: true };
    return (await this.settle(this.other.create(`${parent}/${"b".repeat(32)}__lock__`, data, options))).path;
  }

  fulfilled(id: string, limitMs?: number): Promise<Json> {
    const look = () => (this.request(id)?.state === "fulfilled" ? this.request(id) : undefined);
    return this.until(`request ${id} is fulfilled (now ${this.text(paths.request(id))})`, look, limitMs);
  }
}

export type { ProviderConfig };
