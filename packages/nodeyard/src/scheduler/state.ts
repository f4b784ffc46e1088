import type { Resources } from "@nodeyard/driver";
import { compareRequestIds, type NodeFields, type RequestRecord } from "@nodeyard/model";
import { StoredTimes } from "@nodeyard/runtime";
import type { ImageFacts, NodeEntry, RequestEntry } from "../view/index.ts";
import type { Hosts } from "./hosts.ts";
import { Idle } from "./idle.ts";
import type { Inventory } from "./inventory.ts";
import { Leaving } from "./leaving.ts";
import { noOfferings, type Offerings } from "./offering.ts";
import type { PoolQueue } from "./pool-queue.ts";
import { Registry } from "./registry.ts";
import type { SortedQueue } from "./sorted-queue.ts";
import { Timetable } from "./timetable.ts";
import type { Action, LocalPool, Policy, Verdict, VerdictCode } from "./types.ts";
import { Usage } from "./usage.ts";

/** A waiting request in a pool's queue, with what its place depends on. */
export interface Waiting {
  readonly id: string;
  readonly relativePriority: number;
  readonly record: RequestRecord;
}

/** Nodepool's order: priority prefix as text, relative priority, sequence as text (docs/contract/launcher.md, "Order of requests"). */
export function compareWaiting(a: Waiting, b: Waiting): number {
  return compareRequestIds(a.id, a.relativePriority, b.id, b.relativePriority);
}

/** One that waits for its tenant's limit, with what is kept for it. */
export interface TenantWaiting extends Waiting {
  readonly need: Resources;
}

/** What capacity is counted in: the pool's limits, the provider's quota, launches at once. */
export type Scope = "pool" | "provider" | "launching";

/** The head of a queue that capacity holds up. */
export interface Blocked {
  readonly id: string;
  readonly waiting: Waiting;
  /** What its launches take. */
  readonly need: Resources;
  readonly launches: number;
  /** Of which it is short. */
  readonly scopes: ReadonlySet<Scope>;
}

/** A cloud that refused for quota although it seemed to have some. */
export interface Refusal {
  /** Steady milliseconds from which one request may try. */
  until: number;
  streak: number;
  /** The request that tries now. */
  probe: string | undefined;
}

export interface PoolState {
  policy: LocalPool;
  /** Requests this pool could serve and would look at now, in order. */
  readonly queue: PoolQueue<Waiting>;
  /** Came into the queue behind a head that is held up, and nobody has looked at them yet. */
  readonly fresh: Set<Waiting>;
  /** In the queue because a node of these labels became idle, which the next in line may use if this one does not. */
  readonly woken: Map<Waiting, readonly string[]>;
  /** Requests that yield to another pool until the registry or the request changes. */
  readonly yielding: Map<string, Waiting>;
  /** The head of the queue that capacity holds up; its successors may only take what does not delay it. */
  blocked: Blocked | undefined;
  paused: boolean;
  /** Idle hosts of a pool without launches, and the requests that wait for them. */
  readonly inventory: Inventory<Waiting>;
  /** All hosts of a pool without launches. */
  readonly hosts: Hosts<Waiting>;
}

/** A request that a handler of ours works on. */
export interface Handling {
  readonly pool: string;
  /** Launches that have no node record yet, by label: they count as used. */
  readonly reserved: { readonly label: string; readonly node: string }[];
  readonly claimed: readonly string[];
}

/** All the scheduler knows. Changed only by `reduce`; nothing in it is shared with anyone. */
export interface State {
  policy: Policy;
  complete: boolean;
  /** See the event "ages". */
  agesTrusted: boolean;
  /** A sweep came while the picture was not complete: it is made up for when it is. */
  sweepDue: boolean;
  readonly pools: Map<string, PoolState>;
  readonly registry: Registry;
  readonly requests: Map<string, RequestEntry>;
  /** Every request that waits somewhere, as it stands in the queues. */
  readonly waiting: Map<string, Waiting>;
  /** Requests that some pool of ours cannot serve and may have to decline. */
  readonly incapable: Set<string>;
  /** Requests to classify again, because the registry changed. */
  readonly recheck: Set<string>;
  /** Requests that are `pending`: those that nobody here handles are candidates for a reset. */
  readonly pending: Set<string>;
  /** Pools that would go on but for the bound on starting requests. */
  readonly startBlocked: Set<string>;
  readonly nodes: Map<string, NodeEntry>;
  /** Nodes and requests that cannot be read: they are there, and nothing is done with them. */
  readonly unreadable: {
    readonly nodes: Map<string, Partial<NodeFields>>;
    readonly requests: Set<string>;
  };
  readonly idle: Idle;
  readonly usage: Usage;
  /** One handler for each request: none of them waits in a queue, where another would begin with it. */
  readonly handling: Map<string, Handling>;
  /** Idle nodes promised to a request that is being handled. */
  readonly claimed: Map<string, string>;
  /** Requests whose lock we may not have yet, or whose launches are not all under way. */
  readonly starting: Set<string>;
  /** Nodes that a controller is deleting or deallocating. */
  readonly busyNodes: Set<string>;
  /** Nodes being deleted to make room, by pool: counted as capacity to come. */
  readonly makingRoom: Map<string, Set<string>>;
  /** Nodes on their way out, whoever sends them: capacity to come as well. */
  readonly leaving: Leaving;
  /** Nodes by the request they are allocated to. */
  readonly allocated: Map<string, Set<string>>;
  /** Requests that cannot be launched now and wait for an idle node of a label as well, by `<pool key> <label>`. */
  readonly wanting: Map<string, SortedQueue<Waiting>>;
  /** Requests held back by their tenant's limit. */
  readonly tenantWaiting: Map<string, SortedQueue<TenantWaiting>>;
  /** What the tree says of diskimages, by name. */
  readonly images: Map<string, ImageFacts>;
  /** Requests that wait for an image, by its name. */
  readonly imageWaiting: Map<string, Set<string>>;
  /** Images that builders do not make although they have nothing else to do; until anything of them, or a builder, changes. */
  readonly imagesGivenUp: Set<string>;
  /** Providers whose cloud refused for quota, until one request finds out that it does no longer. */
  readonly refusals: Map<string, Refusal>;
  /** Requests that want more of a provider's quota than others leave of it. */
  readonly quotaWaiting: Map<string, Set<string>>;
  /** When a request first yielded to another pool, steady milliseconds. */
  readonly yields: Map<string, number>;
  /** What fails at the moment, and who waits for it. */
  readonly offerings: Offerings;
  /** Pools with something to try. */
  readonly dirty: Set<string>;
  /** Blocked pools where nothing is new but requests behind the head. */
  readonly newcomers: Set<string>;
  /** Min-ready labels to look at. */
  readonly dirtyLabels: Set<string>;
  readonly minReadyAsking: Set<string>;
  /** Open min-ready requests of any launcher, by label. */
  readonly minReadyOpen: Map<string, Set<string>>;
  /** Ready nodes that min-ready asked for and nobody got yet, by label. */
  readonly stock: Map<string, Set<string>>;
  /** Since when a label lacks ready nodes that another launcher should ask for first, steady milliseconds. */
  readonly minReadyShort: Map<string, number>;
  /** Nodes to look at again, because something they depend on changed. */
  readonly recheckNodes: Set<string>;
  /** Steady milliseconds by `node <id>`, `request <id>`, `label <name>`, `host <pool and host>` and others: when each is to be looked at again. */
  readonly timetable: Timetable;
  /** Since when a node in use, whose machine outlives it, has been without its user: steady milliseconds. */
  readonly deserted: Map<string, number>;
  /** Since when nodes have been in their states, by id. */
  readonly stateTimes: StoredTimes;
  readonly verdicts: Map<string, Verdict>;
}

/** What one turn gathers. */
export interface Turn {
  /** Tree time, milliseconds: what records are held against. */
  readonly now: number;
  /** Milliseconds of a clock that never jumps: what is waited out. */
  readonly steady: number;
  readonly actions: Action[];
  readonly changedVerdicts: Set<string>;
}

export const emptyPolicy: Policy = {
  pools: [],
  providers: new Map(),
  labels: new Map(),
  tenantLimits: new Map(),
  maxHoldAgeMs: Number.POSITIVE_INFINITY,
  maxStarting: 256,
};

export function createState(): State {
  return {
    policy: emptyPolicy,
    complete: false,
    agesTrusted: true,
    sweepDue: false,
    pools: new Map(),
    registry: new Registry(),
    requests: new Map(),
    waiting: new Map(),
    incapable: new Set(),
    recheck: new Set(),
    pending: new Set(),
    startBlocked: new Set(),
    nodes: new Map(),
    unreadable: { nodes: new Map(), requests: new Set() },
    idle: new Idle(),
    usage: new Usage(),
    handling: new Map(),
    claimed: new Map(),
    starting: new Set(),
    busyNodes: new Set(),
    makingRoom: new Map(),
    leaving: new Leaving(),
    allocated: new Map(),
    wanting: new Map(),
    tenantWaiting: new Map(),
    images: new Map(),
    imageWaiting: new Map(),
    imagesGivenUp: new Set(),
    refusals: new Map(),
    quotaWaiting: new Map(),
    yields: new Map(),
    offerings: noOfferings(),
    dirty: new Set(),
    newcomers: new Set(),
    dirtyLabels: new Set(),
    minReadyAsking: new Set(),
    minReadyOpen: new Map(),
    stock: new Map(),
    minReadyShort: new Map(),
    recheckNodes: new Set(),
    timetable: new Timetable(),
    deserted: new Map(),
    stateTimes: new StoredTimes(),
    verdicts: new Map(),
  };
}

/** When that is by the clock that people read, tree time in milliseconds. */
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
  const before = state.verdicts.get(request);
  const same = before?.code === code;
  const since = same ? before.since : turn.now;
  const next = nextTry === undefined ? {} : { nextTry: treeTimeOf(turn, nextTry) };
  state.verdicts.set(request, { code, facts, since, ...next });
  // Facts move with every node that comes or goes; only another reason is news.
  if (!same) turn.changedVerdicts.add(request);
}

export function clearVerdict(state: State, turn: Turn, request: string): void {
  if (state.verdicts.delete(request)) turn.changedVerdicts.add(request);
}
