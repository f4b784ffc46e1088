import { compareRequests, type NodeFields } from "@nodeyard/model";
import { compareText, StoredTimes } from "@nodeyard/runtime";
import type { ImageFacts, NodeEntry } from "@nodeyard/view";
import { AbsentOffers } from "./absent-offers.ts";
import { failureRule } from "./failure-rule.ts";
import type { Gates } from "./gate-table.ts";
import { Idle } from "./idle.ts";
import type { PoolState } from "./pool-state.ts";
import { Registry } from "./registry.ts";
import { RequestStates } from "./request-states.ts";
import { Shares } from "./shares.ts";
import { Slots } from "./slot-index.ts";
import { SortedQueues } from "./sorted-queues.ts";
import type { DemandFacts, SparePolicy } from "./spares.ts";
import { type BudgetLevel, Spending } from "./spending.ts";
import { Timers } from "./timers.ts";
import type { Action, LaunchWanted, Policy, VerdictCode } from "./types.ts";
import { Leaving, Usage } from "./usage.ts";
import { type Waiter, Waits } from "./waits.ts";

/** Work that events have left for a turn, done within the turn's budget. */
interface Todo {
  /** Tenants whose budgets are to be looked at. */
  readonly budgets: Set<string>;
  /** Nodes to look at again, because something they depend on changed. */
  readonly nodes: Set<string>;
  /** Requests to classify again. */
  readonly requests: Set<string>;
  /** Pools with something to try. */
  readonly pools: Set<string>;
  /** Blocked pools where nothing is new but requests behind the head. */
  readonly newcomers: Set<string>;
  /** Lines for slots where there may be one. */
  readonly slots: Set<string>;
  /** Labels whose min-ready is to be looked at. */
  readonly labels: Set<string>;
}

/** What is known of the nodes that are kept ready ahead of requests (`min-ready`), by label. */
export interface MinReady {
  /** A request of ours is being written. */
  readonly asking: Set<string>;
  /** Open min-ready requests of any launcher. */
  readonly open: Map<string, Set<string>>;
  /** Ready nodes that were launched for min-ready and not given to a request yet. */
  readonly stock: Map<string, Set<string>>;
  /** Steady milliseconds since when a label has lacked ready nodes. A launcher whose turn comes later waits from then. */
  readonly short: Map<string, number>;
  /** Labels that lack ready nodes and that no pool of ours can launch now: looked at again when a pool has more room. */
  readonly heldUp: Set<string>;
  /** Nodes in use. */
  readonly inUse: Map<string, Set<string>>;
  /** For labels whose spares have a target. */
  readonly demand: Map<string, DemandFacts>;
  /** The number of spares as it was decided last: a calendar is not read at each event. Tree time, milliseconds. */
  readonly decided: Map<string, Decided>;
  /** Spares that are suspended, or being suspended by whatever launcher: `building` for no request. */
  readonly parking: Map<string, Set<string>>;
  /** By node: the label of a spare that a controller is suspending. */
  readonly suspending: Map<string, string>;
}

interface Decided {
  readonly policy: SparePolicy;
  readonly inUse: number;
  readonly demand: DemandFacts | undefined;
  readonly spares: number;
  readonly at: number;
  readonly until: number;
}

/** `id` is the node's, by which lines are ordered: the oldest node comes first. */
type WaitingLaunch = LaunchWanted & { readonly id: string };

/** Launches of nodes whose records are `building`, and that have not begun. */
export interface Launches {
  /** By label: launches that wait for the result of those in progress, the oldest node first. */
  readonly waits: Waits<WaitingLaunch>;
  /** The same by node. */
  readonly waiting: Map<string, WaitingLaunch>;
  /** By label: ids of the nodes that this or another launcher is making, in ascending order. */
  readonly making: SortedQueues<string>;
  /** The labels that each of these counts for. */
  readonly made: Map<string, readonly string[]>;
}

/** The state of the scheduler. Only `reduce` changes it, and no other code keeps parts of it. */
export interface State {
  policy: Policy;
  complete: boolean;
  /** See the event "ages". */
  agesTrusted: boolean;
  /** A sweep was due while the view was incomplete; it is done when the view is complete again. */
  sweepDue: boolean;
  readonly pools: Map<string, PoolState>;
  readonly registry: Registry;
  readonly absent: AbsentOffers;

  readonly requests: RequestStates;
  readonly waits: Waits;

  readonly nodes: Map<string, NodeEntry>;
  /** Nodes and requests whose records cannot be read. They count against limits, and nothing else is decided about them. */
  readonly unreadable: {
    readonly nodes: Map<string, Partial<NodeFields>>;
    readonly requests: Set<string>;
  };
  readonly idle: Idle;
  /** Free nodes that have to be woken first. */
  readonly suspended: Idle;
  /** Free nodes that only those may have who had them before; they are spares of nobody. */
  readonly kept: Idle;
  readonly usage: Usage;
  readonly shares: Shares;
  readonly spending: Spending;
  /** By tenant: how much of its budget was used when that was last looked at. */
  readonly budgetLevels: Map<string, BudgetLevel>;
  /** Nodes by the request they are allocated to. */
  readonly allocated: Map<string, Set<string>>;
  /** Nodes that a controller is deleting or deallocating. */
  readonly busyNodes: Set<string>;
  readonly leaving: Leaving;
  /** Steady milliseconds since when a node in use has had no user, for nodes whose machine outlives their record. */
  readonly deserted: Map<string, number>;
  /** Since when nodes have been in their states, by id. */
  readonly stateTimes: StoredTimes;
  readonly minReady: MinReady;
  readonly slots: Slots;

  /** The facts of diskimages by name, and the images that no builder makes although all builders are idle. */
  readonly images: { readonly facts: Map<string, ImageFacts>; readonly givenUp: Set<string> };
  /** Recent failures, and the gates that they close. */
  readonly gates: Gates;
  readonly launches: Launches;
  /** By offeringKey: steady milliseconds until which the cloud's word counts that the zone has room. */
  readonly zonesWithRoom: Map<string, number>;
  /** By offeringKey, for labels with several offerings: how long nodes took lately to become ready, milliseconds. */
  readonly readyTimes: Map<string, number>;

  readonly todo: Todo;
  readonly timers: Timers;
}

/** The time and the results of one turn. */
export interface Turn {
  /** Tree time, milliseconds, for the ages of records. */
  readonly now: number;
  /** Milliseconds of a clock that never jumps, for pauses and deadlines. */
  readonly steady: number;
  readonly actions: Action[];
  readonly changedVerdicts: Set<string>;
}

const emptyPolicy: Policy = {
  pools: [],
  providers: new Map(),
  labels: new Map(),
  tenantLimits: new Map(),
  maxHoldAgeMs: Number.POSITIVE_INFINITY,
  maxStarting: 256,
  failures: failureRule(),
};

/** An empty state: no policy, no pools, and a picture that is not complete, so that nothing is decided. */
export function createState(): State {
  return {
    policy: emptyPolicy,
    complete: false,
    agesTrusted: true,
    sweepDue: false,
    pools: new Map(),
    registry: new Registry(),
    absent: new AbsentOffers(),
    requests: new RequestStates(),
    waits: new Waits<Waiter>(compareRequests),
    nodes: new Map(),
    unreadable: { nodes: new Map(), requests: new Set() },
    idle: new Idle(),
    suspended: new Idle(),
    kept: new Idle(),
    usage: new Usage(),
    shares: new Shares(),
    spending: new Spending(),
    budgetLevels: new Map(),
    allocated: new Map(),
    busyNodes: new Set(),
    leaving: new Leaving(),
    deserted: new Map(),
    stateTimes: new StoredTimes(),
    minReady: {
      asking: new Set(),
      open: new Map(),
      stock: new Map(),
      short: new Map(),
      heldUp: new Set(),
      inUse: new Map(),
      demand: new Map(),
      decided: new Map(),
      parking: new Map(),
      suspending: new Map(),
    },
    slots: new Slots(),
    images: { facts: new Map(), givenUp: new Set() },
    gates: { closed: new Map(), failures: new Map() },
    launches: {
      waits: new Waits((a, b) => compareText(a.node, b.node)),
      waiting: new Map(),
      making: new SortedQueues(compareText),
      made: new Map(),
    },
    zonesWithRoom: new Map(),
    readyTimes: new Map(),
    todo: {
      budgets: new Set(),
      nodes: new Set(),
      requests: new Set(),
      pools: new Set(),
      newcomers: new Set(),
      slots: new Set(),
      labels: new Set(),
    },
    timers: new Timers(),
  };
}

/** The indexes of free nodes; a node is in one of them at most. First those that the fewest can use. */
export function freeNodes({ kept, idle, suspended }: Pick<State, "kept" | "idle" | "suspended">) {
  return [kept, idle, suspended] as const;
}

/** Removes a node from the index that it is in; undefined: it is in none. */
export function removeFree(state: State, id: string): ReturnType<Idle["remove"]> {
  for (const index of freeNodes(state)) {
    const place = index.remove(id);
    if (place !== undefined) return place;
  }
  return undefined;
}

/** Converts a steady time into tree time, milliseconds, for records and people. */
export function treeTimeOf({ now, steady }: Pick<Turn, "now" | "steady">, at: number): number {
  return Math.round(now + (at - steady));
}

/** Records why a request waits. The time of the first verdict with the same code is kept. `nextTry`: steady milliseconds. */
export function setVerdict(
  state: State,
  turn: Turn,
  request: string,
  code: VerdictCode,
  facts: Readonly<Record<string, unknown>>,
  nextTry?: number,
): void {
  const known = state.requests.at(request);
  const before = known.verdict;
  const same = before?.code === code;
  const since = same ? before.since : turn.now;
  const next = nextTry === undefined ? {} : { nextTry: treeTimeOf(turn, nextTry) };
  known.verdict = { code, facts, since, ...next };
  // Facts, such as the amount in use, change with every node. Only a new reason is reported.
  if (!same) turn.changedVerdicts.add(request);
}

export function clearVerdict(state: State, turn: Turn, request: string): void {
  const known = state.requests.of(request);
  if (known?.verdict === undefined) return;
  known.verdict = undefined;
  turn.changedVerdicts.add(request);
}
