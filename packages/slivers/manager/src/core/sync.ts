import type { LoanStatus, Resource, Rspec } from "@nodeyard/sliver-protocol";
import { assign, type Places } from "./assign.ts";
import { assignCores, computeLimits, type MachineLimits } from "./limits.ts";
import { computeLoans } from "./loans.ts";
import { configOf, type Observed, plan, type SliverConfig, type Task } from "./plan.ts";
import type { Policy } from "./profiles.ts";
import type { SliverRecord, State } from "./record.ts";
import { type Doing, isSpare, NOTHING } from "./spares.ts";
import { believe, expire, forgetTickets, nextEnd } from "./time.ts";
import { countAll, dailyRates, type Sent } from "./traffic.ts";

/** The facts of the machine that decisions need. */
export interface Machine extends Places, MachineLimits {
  readonly policy: Policy;
  /** For each core, the threads of the same physical core; empty: cores are not assigned. */
  readonly siblings: readonly (readonly number[])[];
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
  doing: Doing = NOTHING,
): SyncResult {
  const timed = believe(forgetTickets(before, now), now);
  const alive = ages ? expire(timed, now) : timed;
  const { state: assigned, unplaced } = assign(alive, observed, machine, doing);
  const { policy } = machine;
  const records = new Map(assigned.records);
  for (const spare of assigned.spares) records.set(spare.name, spare);
  const { effective, loanStatuses } = computeLoans(records, policy.minimums, now);
  const sent = sentByName(assigned.records, observed);
  const state = { ...assigned, traffic: count(assigned, sent, effective, now) };
  const placed = placedOnly(records, effective);
  // From the rspecs after loans: a lender's limits shrink in the same sync in which the borrower's grow.
  const limits = computeLimits(placed, machine);
  const sets = assignCores(records, placed, machine.siblings);
  const configs = new Map<string, SliverConfig>();
  const throttled = new Map<string, number>();
  for (const [name, rspec] of placed) {
    const record = records.get(name)!;
    const cores = machine.siblings.length === 0 ? undefined : sets.cores.get(name);
    const day = state.traffic.get(name);
    const { net, ...others } = limits.get(name)!;
    // The traffic of an earlier generation was that of another user.
    const daily =
      day?.generation === record.generation ? dailyRates(net, rspec, day, sent.get(name), now) : net;
    if (daily.ceil < net.ceil) throttled.set(name, daily.ceil);
    configs.set(name, configOf(record, record.local.index!, rspec, { ...others, net: daily }, cores));
  }
  const lendable = Object.keys(policy.minimums) as Resource[];
  const planned = plan({ records, configs, observed, safe: state.safe, lendable });
  // Spares are made when there is nothing else to do.
  const idle = planned.every(({ name }) => isSpare(name));
  const tasks = planned.filter(({ name, config }) => idle || config === undefined || !isSpare(name));
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
  const { records, spares, nextIncarnation, usedTickets, ticketsForgotten, believed, traffic } = state;
  return [
    nextIncarnation,
    ticketsForgotten,
    believed,
    [...usedTickets.keys()],
    [...traffic],
    [...records.values(), ...spares].map(({ name, local }) => [name, local]),
  ];
}

/** What each sliver has sent, by name. The counters belong to incarnations, so a former life under the same name does not count. */
function sentByName(records: State["records"], observed: readonly Observed[]): ReadonlyMap<string, Sent> {
  const byIncarnation = new Map(observed.map(({ incarnation, sent }) => [incarnation, sent]));
  return new Map(
    [...records.values()].flatMap(({ name, local }) => {
      const sent = byIncarnation.get(local.incarnation);
      return sent === undefined ? [] : [[name, sent] as const];
    }),
  );
}

/** Adds the traffic since the last look to the days of the slivers. */
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

/** The rspecs of slivers with a place; others have no limits to compute. */
function placedOnly(
  records: ReadonlyMap<string, SliverRecord>,
  effective: ReadonlyMap<string, Rspec>,
): Map<string, Rspec> {
  return new Map([...effective].filter(([name]) => records.get(name)?.local.index !== undefined));
}
