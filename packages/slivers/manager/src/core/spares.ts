import type { Observed } from "./plan.ts";
import type { Given, SliverRecord, State } from "./record.ts";

/** Begins the names of spares. Slivers of documents have names without a dot. */
const PREFIX = "spare.";
/** Disk limit of a spare in KiB: its sshd writes next to nothing, and the pool must keep its room for slivers. */
const DISK = 65_536;

/** Whether it is a spare: a sliver without a login that runs before a document asks for it. */
export function isSpare(name: string): boolean {
  return name.startsWith(PREFIX);
}

/** What the manager does with incarnations that this module must not give away. */
export interface Doing {
  /** A task is in progress, or ended after the machine was examined. */
  isBusy(incarnation: number): boolean;
  /** Its last task failed. */
  hasFailed(incarnation: number): boolean;
}

/** For decisions while no task is known. */
export const NOTHING: Doing = { isBusy: () => false, hasFailed: () => false };

/**
 * What a sliver is made and started with and what cannot be changed while it runs. Undefined: no other sliver can become it, because of a
 * script that runs at its start, or devices, caches or cores of its own.
 */
function kindOf({
  image,
  nesting,
  caches = [],
  initscript,
  devices = [],
  volumes = [],
  rspec,
}: Given): string | undefined {
  if (initscript !== "" || devices.length > 0 || volumes.length > 0 || rspec.cpuCores > 0) return undefined;
  return JSON.stringify([image, nesting === true, caches, capOf(rspec)]);
}

/** Its sshd tells programs how many processors that is. */
function capOf({ cpuCap, cpuGuarantee }: Given["rspec"]): number {
  return cpuCap === 0 ? 0 : Math.max(cpuCap, cpuGuarantee);
}

/**
 * The spares of a machine that keeps `count`: of the kinds that were asked for last. A sliver that takes one is replaced by another of its
 * kind, so that spares follow what the machine is used for.
 */
export class Spares {
  readonly #count: number;
  readonly #ready: ReadonlySet<number>;
  #all: SliverRecord[];

  /** Copies of a former image, which are no spares any more. */
  readonly outdated: readonly SliverRecord[];

  /** Spares that failed are dropped: the next sliver of their kind brings another. */
  constructor(all: State["spares"], count: number, observed: readonly Observed[], doing: Doing) {
    const numbers = (some: readonly Observed[]) => new Set(some.map(({ incarnation }) => incarnation));
    const outdated = numbers(observed.filter((one) => one.outdated));
    const isOld = ({ local }: SliverRecord) => outdated.has(local.incarnation);
    this.#count = count;
    this.outdated = all.filter(isOld);
    this.#all = last(
      all.filter((one) => !isOld(one) && !doing.hasFailed(one.local.incarnation)),
      count,
    );
    // A start is over when its task is.
    const runs = ({ phase, applied, incarnation }: Observed) =>
      phase === "running" && applied !== undefined && !doing.isBusy(incarnation);
    this.#ready = numbers(observed.filter(runs));
  }

  get all(): readonly SliverRecord[] {
    return this.#all;
  }

  /** A running spare that can become this sliver. It is no spare any more. */
  take(record: SliverRecord): Pick<SliverRecord["local"], "index" | "incarnation"> | undefined {
    const kind = kindOf(record);
    const found = this.#all.find((one) => this.#ready.has(one.local.incarnation) && kindOf(one) === kind);
    if (kind === undefined || found?.local.index === undefined) return undefined;
    this.#remove(found);
    return { index: found.local.index, incarnation: found.local.incarnation };
  }

  /** Gives up the oldest spare with an index, which a sliver needs. */
  drop(): void {
    const oldest = this.#all.find(({ local }) => local.index !== undefined);
    if (oldest !== undefined) this.#remove(oldest);
  }

  /** Adds a spare of the kind of a sliver that was given a place: one more like it may follow. The oldest one too many is dropped. */
  add(record: SliverRecord, incarnation: number): void {
    if (this.#count === 0 || kindOf(record) === undefined) return;
    const { image, nesting, caches } = record;
    const guarantees = { cpuGuarantee: 0, memoryGuarantee: 0, netGuarantee: 0, net2Guarantee: 0 };
    const rspec = { ...record.rspec, ...guarantees, enabled: 1, cpuCap: capOf(record.rspec), disk: DISK };
    this.#all.push({
      name: `${PREFIX}${incarnation}`,
      stamp: record.stamp,
      generation: 0,
      kind: "sliver",
      instantiation: "plc-instantiated",
      keys: [],
      image,
      initscript: "",
      nesting,
      caches,
      delegations: [],
      rspec,
      local: { incarnation, loans: [] },
    });
    this.#all = last(this.#all, this.#count);
  }

  /** Gives indexes to spares that have none; `next` returns undefined when all are taken. */
  place(next: () => number | undefined): void {
    this.#all = this.#all.flatMap((one) => {
      const index = one.local.index ?? next();
      return index === undefined ? [] : [{ ...one, local: { ...one.local, index } }];
    });
  }

  #remove(record: SliverRecord): void {
    this.#all = this.#all.filter((one) => one !== record);
  }
}

function last<T>(all: readonly T[], count: number): T[] {
  return all.slice(Math.max(0, all.length - count));
}
