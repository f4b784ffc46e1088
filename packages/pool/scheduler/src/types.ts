import type { LabelReuse, Place, Resources, SlotSettings } from "@nodeyard/driver";
import type { NodeFields, Offering, SlotPlace } from "@nodeyard/model";
import type { BackingFacts, ComponentEntry, ImageFacts, NodeEntry, RequestEntry } from "@nodeyard/view";
import type { FailureRule } from "./failure-rule.ts";
import type { Failures } from "./gate-table.ts";
import type { ShareWeights } from "./shares.ts";
import type { PlannedSlot } from "./slot-index.ts";
import type { DemandFacts, SparePolicy } from "./spares.ts";
import type { Budget, BudgetLevel, EndedCosts } from "./spending.ts";

/** One of several ways to buy machines of a label. */
export interface LocalOffering {
  /** What the machine is bought as (`Offering.type`). */
  readonly type: string;
  /** Null: any zone of the pool. */
  readonly zone: string | null;
  /** Higher is preferred. */
  readonly weight: number;
  /** Per hour; null: unknown. All prices of a label are in one currency. */
  readonly price: number | null;
  readonly maxPrice: number | null;
  /** What one node takes. */
  readonly need: Resources;
  /** Why it can never be had. */
  readonly unavailable?: string;
}

/** How nodes of a label of a pool are used again. */
export interface LocalReuse extends Omit<LabelReuse, "check" | "checkMs"> {
  /** Digest of what a node is launched by. One that was launched by something else is not used again. */
  readonly settings: string;
}

/** One pool of this launcher, as the scheduler needs it. */
export interface LocalPool {
  /** `<provider>/<pool>`; see view's poolKey. */
  readonly key: string;
  /** The launcher-pool id that stands in `declined_by` and in `Node.launcher`. */
  readonly id: string;
  readonly provider: string;
  readonly name: string;
  readonly labels: ReadonlySet<string>;
  readonly priority: number;
  readonly limits: Resources;
  /** False: the pool only offers nodes that exist (static). */
  readonly launches: boolean;
  /** What one node of each label takes. */
  readonly needs: ReadonlyMap<string, Resources>;
  /** Labels that can not be served and why (error labels, images that the provider does not list). */
  readonly unavailable: ReadonlyMap<string, string>;
  /** The diskimage that a launch of a label boots, for labels with one. */
  readonly images: ReadonlyMap<string, string>;
  /** The provider's quota does not limit this pool; its nodes still count against the quota for the other pools. */
  readonly ignoresQuota: boolean;
  /** Zones of which each nodeset gets one; empty: the cloud has none, or chooses itself. */
  readonly zones: readonly string[];
  /** What machines of a label are bought as, where the driver says it; absent: the label's name. */
  readonly types?: ReadonlyMap<string, string>;
  /** Of labels that the file gives several; `needs` has the least that one node of such a label takes of each resource. */
  readonly offerings?: ReadonlyMap<string, readonly LocalOffering[]>;
  /** Labels whose nodes are used again; absent: none has one. */
  readonly reuse?: ReadonlyMap<string, LocalReuse>;
  /** Pools without launches: how many nodes of a label could ever be there. */
  readonly inventory: ReadonlyMap<string, number>;
}

/** A provider of this launcher, as far as decisions depend on it. */
export interface LocalProvider {
  readonly name: string;
  /** Launches at once over all pools; 0: the pools look at no request. */
  readonly maxConcurrency: number;
  /** Its machines go on after a node is gone, as static hosts and backing nodes do; known before any of its pools serves. */
  readonly outlivesNodes?: boolean;
  /** Free nodes can be suspended. */
  readonly suspends?: boolean;
  /** Where it sees machines; absent: they can be nowhere else. Nodes of another place are not given out. */
  readonly place?: Place;
  /** How its labels are cut into slots of backing nodes; absent: its nodes are no slots. */
  readonly slots?: ReadonlyMap<string, SlotSettings>;
  /** The cloud's limits less what others use. */
  readonly quota: Resources;
  /** The cloud's limits; absent: as `quota`. A request for more is declined, because waiting does not help. */
  readonly limits?: Resources;
  /** Tree time, milliseconds, at which `quota` and `limits` were read. */
  readonly readAt?: number;
  /** Set while calls of the provider's API fail, so that `quota` and `limits` may be out of date. */
  readonly failing?: { readonly since: number; readonly error: string; readonly nextTry?: number };
}

/** What the configuration says of a label for all pools. */
export interface LabelPolicy {
  readonly name: string;
  readonly minReady: number;
  /** Milliseconds; Infinity: never too old. */
  readonly maxReadyAgeMs: number;
  /** Nodes kept ready beyond `minReady`; null or absent: none, and free nodes stay. */
  readonly spares?: SparePolicy | null;
}

/** A registered launcher pool, ours or another's. */
export interface RegisteredPool {
  /** Of its component: `pool/<name of the znode>`. */
  readonly key: string;
  readonly id: string;
  readonly provider: string;
  readonly labels: ReadonlySet<string>;
  readonly priority: number;
  /** The head of its queue waits for room. */
  readonly paused: boolean;
}

/** A pool of a provider that the configuration has and that is not open, or not with that configuration. */
export interface OpeningPool {
  /** `<provider>/<pool>`; see view's poolKey. */
  readonly key: string;
  readonly provider: string;
  readonly labels: ReadonlySet<string>;
}

/** The scheduler's input that changes only with the configuration or a provider's facts. */
export interface Policy {
  readonly pools: readonly LocalPool[];
  /** Pools that will be there when their providers are open; absent: none. */
  readonly opening?: readonly OpeningPool[];
  readonly providers: ReadonlyMap<string, LocalProvider>;
  readonly labels: ReadonlyMap<string, LabelPolicy>;
  readonly tenantLimits: ReadonlyMap<string, Resources>;
  /** By tenant; absent: none has one. */
  readonly budgets?: ReadonlyMap<string, Budget>;
  /** Milliseconds; Infinity: a held node is kept for ever unless its own record says otherwise. */
  readonly maxHoldAgeMs: number;
  /** Absent: requests of one priority are served by age. */
  readonly shares?: ShareWeights | undefined;
  /** Requests between acceptance and the start of their last launch, at most. */
  readonly maxStarting: number;
  /** What failed launches lead to. */
  readonly failures: FailureRule;
}

/** A node whose record is `building`, and whose machine is to be made now; its plan did not permit it (`mayBegin`). */
export interface LaunchWanted {
  readonly node: string;
  readonly request: string;
  readonly label: string;
  /** Key of its pool. */
  readonly pool: string;
  readonly offering: Offering;
  /** Types of the label that the cloud has refused for this node. */
  readonly without?: readonly string[];
  /** A launch of this node failed already. */
  readonly again: boolean;
  /** False for what costs no machine: a slot. */
  readonly counted: boolean;
  /** How long it may wait to begin, milliseconds. */
  readonly limitMs: number;
}

/** What happens, in order. */
export type SchedulerEvent =
  | { readonly type: "policy"; readonly policy: Policy }
  | { readonly type: "node"; readonly id: string; readonly after?: NodeEntry | undefined }
  | { readonly type: "request"; readonly id: string; readonly after?: RequestEntry | undefined }
  /** A node or request whose record cannot be read, with what is known of it. Without `known` it is readable again, or gone. */
  | {
      readonly type: "unreadable";
      readonly kind: "node" | "request";
      readonly id: string;
      readonly known?: Partial<NodeFields> | undefined;
    }
  | { readonly type: "component"; readonly key: string; readonly after?: ComponentEntry | undefined }
  | { readonly type: "image"; readonly image: string; readonly after?: ImageFacts | undefined }
  /** What is known of a node that carries slots of another provider. */
  | { readonly type: "backing"; readonly id: string; readonly after?: BackingFacts | undefined }
  /** The caches of a backing node (`cacheText`, without the installation). */
  | { readonly type: "caches"; readonly backing: string; readonly caches: ReadonlySet<string> }
  /** The cloud refused a launch for want of room, and named zones that have room for the type. */
  | {
      readonly type: "zones-with-room";
      readonly provider: string;
      readonly offered: string;
      readonly zones: readonly string[];
    }
  /** The cloud refused a launch for its quota, whatever we believe of it. */
  | { readonly type: "quota-refused"; readonly provider: string }
  /** What is known of the failures of an offering or a label, by its key; absent: nothing failed. */
  | { readonly type: "failures"; readonly key: string; readonly after?: Failures | undefined }
  /** What a tenant has spent in a month on nodes that it has no more; absent: there is no ledger. */
  | {
      readonly type: "spent";
      readonly tenant: string;
      readonly month: string;
      readonly after?: EndedCosts | undefined;
    }
  /** What was asked for of a label whose spares have a target. */
  | { readonly type: "demand"; readonly label: string; readonly demand: DemandFacts }
  | { readonly type: "launch-wanted"; readonly launch: LaunchWanted }
  /** Who wanted a launch that has not begun wants it no longer. */
  | { readonly type: "launch-given-up"; readonly node: string }
  | { readonly type: "complete"; readonly complete: boolean }
  /** Whether anything may be deleted because of its age: not after a clock jumped, until it is known what time it is. */
  | { readonly type: "ages"; readonly trusted: boolean }
  /** The session ended: nothing is ours any more. */
  | { readonly type: "session-lost" }
  /** All nodes of an accepted request are launching or ready. */
  | { readonly type: "started"; readonly request: string }
  /**
   * A handler ended. `retryMs`: the request is looked at again after that time, not before. `unsure`: a write of ours may or
   * may not have happened.
   */
  | {
      readonly type: "handled";
      readonly request: string;
      readonly retryMs?: number;
      readonly unsure?: boolean;
      /** Its plan did not come about, and it was put back: it keeps its place until it is tried again. */
      readonly putBack?: boolean;
    }
  /** A launch waits for a slot, which an action "slot" gives it; and waits no longer. */
  | {
      readonly type: "slot-wanted";
      readonly request: string;
      readonly node: string;
      readonly provider: string;
      readonly label: string;
    }
  | { readonly type: "slot-left"; readonly node: string }
  /** A planned slot was not claimed: another launcher was first, or its backing node has changed. */
  | { readonly type: "slot-lost"; readonly place: SlotPlace }
  | { readonly type: "deleted"; readonly node: string; readonly retryMs?: number }
  | { readonly type: "deallocated"; readonly node: string; readonly retryMs?: number }
  /** `refused`: the node could not be suspended, and goes. */
  | {
      readonly type: "suspended";
      readonly node: string;
      readonly label: string;
      readonly refused: boolean;
      readonly retryMs?: number;
    }
  /** It is known what becomes of a used node that was to be checked. */
  | { readonly type: "checked"; readonly node: string; readonly retryMs?: number }
  | { readonly type: "min-ready-requested"; readonly label: string; readonly retryMs?: number }
  /** Slow resync: look again at what only time or a missed event would show. */
  | { readonly type: "sweep" }
  /** Time passed; nothing else. */
  | { readonly type: "tick" };

/** One node of a nodeset: a ready one, or one to launch; with the slot for it, where it needs one and there is one now. */
export type PlannedNode =
  | { readonly label: string; readonly reuse: string }
  | {
      readonly label: string;
      readonly launch: Resources;
      readonly slot?: PlannedSlot;
      /** The type of the offering, for labels with several. */
      readonly type?: string;
      /** Its first launch begins without a `launch-wanted`. */
      readonly permitted?: boolean;
    };

/** `decline` with no pools only asks whether everyone has declined by now. Pools stand by launcher-pool id there, by key elsewhere. */
export type Action =
  | {
      readonly type: "accept";
      readonly request: string;
      readonly pool: string;
      readonly nodes: readonly PlannedNode[];
      /** The zone of launched nodes; null: the cloud chooses, or has no zones. */
      readonly zone: string | null;
    }
  | {
      readonly type: "decline";
      readonly request: string;
      readonly pools: readonly string[];
      readonly reason: string;
    }
  | { readonly type: "reset"; readonly request: string }
  /** A waiting launch gets a slot, which it must claim, or is refused one. `gone`: no request waits for its node any more. */
  | { readonly type: "slot"; readonly node: string; readonly slot: PlannedSlot }
  | {
      readonly type: "slot";
      readonly node: string;
      readonly slot?: undefined;
      readonly refused: { readonly why: string; readonly gone: boolean };
    }
  /** `version`: of the record for which this was decided. If it differs once the node is locked, the scheduler decides again. */
  | { readonly type: "delete"; readonly node: string; readonly version: number; readonly why: string }
  | { readonly type: "deallocate"; readonly node: string }
  /** A spare is suspended. `version`: as for "delete". */
  | { readonly type: "suspend"; readonly node: string; readonly label: string; readonly version: number }
  /** A used node is checked, and free for its next use if it passes. `version`: as for "delete". */
  | { readonly type: "check"; readonly node: string; readonly version: number }
  | { readonly type: "min-ready"; readonly label: string; readonly count: number }
  /**
   * A launch begins. `probe`: as the one try of an offering that is closed. `instead`: as another offering of its label, and what the node
   * takes then; its record is to show both first.
   */
  | {
      readonly type: "launch";
      readonly node: string;
      readonly probe: boolean;
      readonly instead?: { readonly type: string; readonly need: Resources };
    }
  | { readonly type: "refuse-launch"; readonly node: string; readonly why: string }
  /** The budget of a label is spent, or the label works again: to be reported. */
  | {
      readonly type: "label-changed";
      readonly label: string;
      readonly change: "spent" | "works";
      readonly facts: Readonly<Record<string, unknown>>;
    }
  /** More of a tenant's budget is used, or a new month has begun: to be reported. */
  | {
      readonly type: "budget-changed";
      readonly tenant: string;
      readonly level: BudgetLevel;
      readonly facts: Readonly<Record<string, unknown>>;
    }
  | { readonly type: "pause"; readonly pool: string; readonly paused: boolean }
  /** A request waits for the provider's quota: read again how much of it others use. */
  | { readonly type: "ask-quota"; readonly provider: string };

/** Why a request is not served now. Codes are stable and listed in `verdictCodes`. */
export interface Verdict {
  readonly code: VerdictCode;
  readonly facts: Readonly<Record<string, unknown>>;
  /** Tree time, milliseconds. */
  readonly since: number;
  /** When the request is looked at again at the latest, tree time, milliseconds; absent: only an event wakes it. */
  readonly nextTry?: number;
}

/** Why a request waits, by code, in the words that `explain` prints. */
export const verdictCodes = {
  "queue.behind": "Requests ahead of it, by priority and then by age, wait in this pool",
  "queue.share":
    "Others of the same priority wait who have less of their share (nodes by weight) than the tenant or client that asked",
  "queue.starting": "The launcher already starts as many requests at once as it may",
  "capacity.pool": "The pool's limit is used up",
  "capacity.provider": "The provider's quota, as last read, is used up",
  "provider.failing": "The provider's API fails, so its free capacity is unknown; this is not about quota",
  "provider.foreign":
    "A launcher that is not Nodeyard's serves the provider, too: so that no host or slot is given twice, this launcher does not",
  "provider.configuration": "The provider cannot be opened as it is configured",
  "capacity.concurrency": "The provider already launches as many nodes at once as max-concurrency allows",
  "capacity.tenant": "The tenant's limit is used up",
  "budget.used": "The tenant has spent its budget of this month; what runs goes on",
  "capacity.reserved": "Free capacity is kept for a request ahead of it that needs more",
  "capacity.refused":
    "The cloud refused a launch for quota, although some seemed to be left; it is asked again later",
  "image.waits": "No image of the label is uploaded to the provider yet; a builder makes it or may make it",
  "offering.failing":
    "Launches of this label failed in a row, or the cloud has no capacity for it: it is not launched for a while",
  "offering.budget": "Too many launches of this label failed within the hour: it is not launched for a while",
  "offering.price":
    "Every offering of the label that its limits leave room for costs more than its max-price now",
  "offering.trying": "Launches of this label failed; one request tests whether they work again",
  "nodes.none-free": "Every host of that label is in use, or kept for requests ahead of it",
  "nodes.too-few":
    "It wants more hosts of its labels than are registered; nothing is kept for it until there are more",
  "yield.provider": "The request prefers another provider, which can serve it",
  "yield.priority": "A pool with a better priority can serve it",
  "yield.capable": "Another pool has all labels; this one lacks some",
  "offer.awaited":
    "No registered pool can serve it now; a pool that offered its labels left minutes ago, or a provider that offers them is being opened",
  "provider.inert": "max-concurrency is 0: the provider takes no requests",
  "retry.later": "The last try failed; it is retried",
  handling: "Nodes are being made or claimed",
  "queue.next": "It is first in this pool and about to be considered",
  "declined.here": "Every pool of this launcher has declined; pools of others have not decided yet",
  "pending.elsewhere":
    "Another launcher has accepted it; if that launcher died, it is put back within a minute",
  "pools.none": "This launcher serves no pool now",
  "tree.incomplete": "The launcher is reading the tree, or waits for its pools to be registered",
} as const;

/** Codes of verdicts; an interface: programs read them. */
export type VerdictCode = keyof typeof verdictCodes;

/** What one turn decided. */
export interface Output {
  readonly actions: readonly Action[];
  /** Requests whose verdict changed; undefined: it waits for nothing any more. */
  readonly verdicts: readonly { readonly request: string; readonly verdict: Verdict | undefined }[];
  /** Steady milliseconds, at which a "tick" is needed at the latest; undefined: none. */
  readonly nextWake: number | undefined;
  /** More work is ready than one turn may do: call again soon. */
  readonly more: boolean;
  /** What went wrong inside: a fault in an event or a piece of work stops neither the others nor the turn. */
  readonly failures: readonly { readonly at: string; readonly error: unknown }[];
}
