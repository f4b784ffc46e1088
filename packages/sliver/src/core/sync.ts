import type { LoanStatus, Resource, Rspec } from "@nodeyard/sliver-protocol";
import { freeDevices, heldDevices } from "./devices.ts";
import { assignCores, computeLimits } from "./limits.ts";
import { computeLoans } from "./loans.ts";
import { configOf, type Observed, plan, type SliverConfig, type Task, wanted } from "./plan.ts";
import type { Policy } from "./profiles.ts";
import type { SliverRecord, State } from "./record.ts";
import { believe, expire, forgetTickets, nextEnd } from "./time.ts";
import { countAll, dailyRates, type Sent } from "./traffic.ts";

/**
 * Assigns an index to each sliver that needs one: the lowest that neither a record nor a sliver on the machine has. After a lost store, a
 * running sliver with the same name and generation is adopted.
 */
export function assign(
  state: State,
  observed: readonly Observed[],
  { highestIndex, devices = {} }: Pick<Machine, "highestIndex" | "devices">,
): { state: State; unplaced: readonly string[] } {
  const records = new Map(state.records);
  let { nextIncarnation } = state;
  for (const { incarnation } of observed) nextIncarnation = Math.max(nextIncarnation, incarnation + 1);
  const taken = new Set<number>();
  for (const { local } of records.values()) if (local.index !== undefined) taken.add(local.index);
  const free = observed.filter(({ index }) => !taken.has(index));
  for (const { index } of observed) taken.add(index);

  for (const record of state.records.values())
    if (record.local.adopt !== undefined) records.set(record.name, adopted(record, free));

  const unplaced: string[] = [];
  const held = heldDevices(records, observed);
  let candidate = 1;
  for (const record of [...records.values()].sort((a, b) => a.local.incarnation - b.local.incarnation)) {
    if (wanted(record) !== true || record.local.index !== undefined) continue;
    while (taken.has(candidate)) candidate++;
    if (candidate > highestIndex) {
      unplaced.push(record.name);
      continue;
    }
    const own = freeDevices(record.devices, devices, held);
    if (own === undefined) {
      if (freeDevices(record.devices, devices, []) === undefined) unplaced.push(record.name);
      continue;
    }
    held.push(...own);
    taken.add(candidate);
    // After a lost store the counter may be behind the incarnations on the machine.
    const incarnation = isUsed(record, observed) ? nextIncarnation++ : record.local.incarnation;
    const given = { index: candidate, incarnation, ...(own.length === 0 ? {} : { devices: own }) };
    records.set(record.name, { ...record, local: { ...record.local, ...given } });
  }
  return { state: { ...state, nextIncarnation, records }, unplaced };
}

/** As it is found, and what it holds. */
function adopted(record: SliverRecord, free: readonly Observed[]): SliverRecord {
  const { adopt: _, ...local } = record.local;
  const found = free.find(({ name, generation }) => name === record.name && generation === record.generation);
  if (found === undefined) return { ...record, local };
  const { index, incarnation, devices } = found;
  const held = devices === undefined ? {} : { devices };
  return { ...record, local: { ...local, index, incarnation, ...held } };
}

function isUsed({ local }: SliverRecord, observed: readonly Observed[]): boolean {
  return observed.some(({ incarnation }) => incarnation === local.incarnation);
}

/** The facts of the machine that decisions need. */
export interface Machine {
  readonly policy: Policy;
  /** Per mille of one CPU, for all slivers. */
  readonly cpu: number;
  /** bit/s. */
  readonly link: number;
  /** For each core, the threads of the same physical core; empty: cores are not assigned. */
  readonly siblings: readonly (readonly number[])[];
  readonly highestIndex: number;
  /** Devices by class; the files of one are separated by blanks. Absent: none. */
  readonly devices?: Readonly<Record<string, readonly string[]>>;
}

/** The decisions of a sync. */
export interface SyncResult {
  /** Must be stored before a task starts. */
  readonly state: State;
  readonly effective: ReadonlyMap<string, Rspec>;
  readonly loanStatuses: ReadonlyMap<string, readonly LoanStatus[]>;
  readonly tasks: readonly Task[];
  /** Slivers without a free index, and cores that were requested but not assigned. */
  readonly unplaced: readonly string[];
  readonly missingCores: ReadonlyMap<string, number>;
  /** Highest rate in bit/s of a sliver whose daily budget is nearly used up. */
  readonly throttled: ReadonlyMap<string, number>;
  /** Seconds at which a record or loan ends next; Infinity: none ends. */
  readonly nextEnd: number;
}

/**
 * Decides what the machine needs, without side effects. `now` is in seconds. `ages`: whether slivers may expire now. A second sync in a row
 * plans nothing new (rule 9).
 */
export function sync(
  before: State,
  observed: readonly Observed[],
  machine: Machine,
  now: number,
  ages = true,
): SyncResult {
  const timed = believe(forgetTickets(before, now), now);
  const alive = ages ? expire(timed, now) : timed;
  const { state: assigned, unplaced } = assign(alive, observed, machine);
  const { policy } = machine;
  const { effective, loanStatuses } = computeLoans(assigned.records, policy.minimums, now);
  const sent = sentByName(assigned.records, observed);
  const state = { ...assigned, traffic: count(assigned, sent, effective, now) };
  const placed = placedOnly(state.records, effective);
  const limits = computeLimits(placed, machine);
  const sets = assignCores(state.records, placed, machine.siblings);
  const configs = new Map<string, SliverConfig>();
  const throttled = new Map<string, number>();
  for (const [name, rspec] of placed) {
    const record = state.records.get(name)!;
    const cores = machine.siblings.length === 0 ? undefined : sets.cores.get(name);
    const day = state.traffic.get(name);
    const { net, ...others } = limits.get(name)!;
    const daily =
      day?.generation === record.generation ? dailyRates(net, rspec, day, sent.get(name), now) : net;
    if (daily.ceil < net.ceil) throttled.set(name, daily.ceil);
    configs.set(name, configOf(record, record.local.index!, rspec, { ...others, net: daily }, cores));
  }
  const lendable = Object.keys(policy.minimums) as Resource[];
  const tasks = plan({ records: state.records, configs, observed, safe: state.safe, lendable });
  const missingCores = sets.missing;
  return {
    ...{ state, effective, loanStatuses, tasks, unplaced, missingCores, throttled },
    nextEnd: nextEnd(state, now),
  };
}

/** Whether a sync changed anything that must be stored. */
export function hasChanged(before: State, after: State): boolean {
  return JSON.stringify(changeable(before)) !== JSON.stringify(changeable(after));
}

/** The parts of a state that a sync may change. */
function changeable(state: State): unknown {
  const { records, nextIncarnation, usedTickets, ticketsForgotten, believed, traffic } = state;
  return [
    nextIncarnation,
    ticketsForgotten,
    believed,
    [...usedTickets.keys()],
    [...traffic],
    [...records.values()].map(({ name, local }) => [name, local]),
  ];
}

function sentByName(records: State["records"], observed: readonly Observed[]): ReadonlyMap<string, Sent> {
  const byIncarnation = new Map(observed.map(({ incarnation, sent }) => [incarnation, sent]));
  return new Map(
    [...records.values()].flatMap(({ name, local }) => {
      const sent = byIncarnation.get(local.incarnation);
      return sent === undefined ? [] : [[name, sent] as const];
    }),
  );
}

function count(
  { records, traffic }: State,
  sent: ReadonlyMap<string, Sent>,
  effective: ReadonlyMap<string, Rspec>,
  now: number,
): State["traffic"] {
  const found = [...sent].flatMap(([name, one]) => {
    const { generation, rspec } = records.get(name)!;
    return [{ name, generation, sent: one, rspec: effective.get(name) ?? rspec }];
  });
  return countAll(traffic, found, now);
}

function placedOnly(
  records: ReadonlyMap<string, SliverRecord>,
  effective: ReadonlyMap<string, Rspec>,
): Map<string, Rspec> {
  return new Map([...effective].filter(([name]) => records.get(name)?.local.index !== undefined));
}
