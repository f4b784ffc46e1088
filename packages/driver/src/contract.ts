import type { Clock, Random } from "@nodeyard/runtime";
import type { Connection, LabelConfig, PoolConfig, ProviderConfig } from "./config/compiled.ts";
import type { DriverConfig } from "./config/driver-config.ts";
import type { NodeUse, Offers } from "./offers.ts";
import type { Resources } from "./resources.ts";
import type { Step, StepContext } from "./run-steps.ts";
import type { ExternalId, ImageTag, Tag } from "./tags.ts";

/**
 * What a driver is: it makes and unmakes machines and says what it sees. It never writes the tree, never chooses a
 * node, and never decides policy.
 */
export interface Driver<Config extends ProviderConfig = ProviderConfig> {
  /** What `driver:` in the configuration calls it: lower-case letters, digits and dashes. */
  readonly name: string;
  /** The contract that it was written for, this one; a launcher that knows another does not load it. */
  readonly contract: 1;
  readonly capabilities: Capabilities;
  readonly config: DriverConfig<Config>;
  /** Connects. May reject with a DriverError; the provider is then left out and tried again with back-off. */
  open(config: Config, context: DriverContext): Promise<Provider>;
}

/** What a driver can do; the launcher asks nothing else of it. */
export interface Capabilities {
  /** It can launch new machines. False: it only offers what its inventory lists. */
  readonly launches: boolean;
  /** It lists nodes that should exist (`inventory`). */
  readonly inventory: boolean;
  /** It can say whether a machine answers (`probe`). */
  readonly probes: boolean;
  /** Resources carry our tag, so that `find`, `list` and the leak sweep work. */
  readonly tags: boolean;
  /** Its machines may run on the launcher's own host, loopback and all: nothing there is left open to them. Absent: they do not. */
  readonly local?: boolean;
  /**
   * Its nodes are slots of nodes that other providers make (`offers.slots`): the launcher obtains those, gives each node its slot before
   * `create`, and takes the slot back after `remove`. Absent: they are machines of its own.
   */
  readonly backing?: boolean;
}

/** The handles a driver works with; in a simulation none of them is the machine's own. */
export interface DriverContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly scan: Scanner;
  /** The installation's UUID (`/nodeyard/installation`); every resource made must carry it. */
  readonly installation: string;
  /** What is known of resources that cannot carry a tag. Absent: nothing outlives the process. */
  readonly evidence?: Evidence;
  /** Folder of this process for what outlives it; absent: it has none. */
  readonly stateFolder?: string;
  /** Where the nodes of a driver with `capabilities.backing` are; absent for every other. */
  readonly backings?: Backings;
  /** Tells what explains how the jobs of a machine fare, when it is learnt: "the cloud takes it back". Absent: nobody wants to know. */
  readonly remark?: (about: Tag, text: string) => void;
  /** Takes the time of each request to the cloud's API, for metrics. Absent: nobody wants to know. */
  readonly observe?: (call: ApiCall) => void;
}

/** A request to a cloud's API that has ended: each try is one, without its wait for the rate limit. */
export interface ApiCall {
  /** Service, method and resource, without ids: `compute.GET.servers.detail`. Few values: each is a series of its own. */
  readonly operation: string;
  /** The HTTP status; `none` where no answer came. */
  readonly result: string;
  readonly ms: number;
}

/** A node of another provider that carries slots of this one. */
export interface BackingNode {
  /** Ten digits. */
  readonly id: string;
  readonly host: string | null;
  readonly port: number;
  readonly hostKeys: readonly string[];
  /** Of its slots. */
  readonly label: string;
  /** How many it carries. */
  readonly slots: number;
  /** When it became ours, in seconds: written once per use, read by every launcher, higher than in any earlier use. */
  readonly launched: number;
}

/** The backing nodes of a provider, as the tree shows them. */
export interface Backings {
  all(): readonly BackingNode[];
  /** What is known of a node with a slot; `on`: where it has one. Undefined: there is no such node. */
  of(nodeId: string): SlotOwner | undefined;
  /** Whether a backing node is to take no more slots. */
  isRetired(id: string): boolean;
  /** Has it take no more slots. Idempotent. */
  retire(id: string, why: string): Promise<void>;
  /**
   * Nodes that have a slot there, by the tree itself; with `how` it also reads how each is used, else it says "between". A slot is taken
   * before `create` and freed after `remove`, so that what a machine was seen to have before the call, and whose node is missing here, is
   * left over.
   */
  uses(id: string, how: boolean): Promise<ReadonlyMap<string, NodeUse>>;
}

/** A node that has a slot, or had one when its launch was cut off, and the backing nodes on which it may have left something. */
export interface SlotOwner {
  readonly label: string;
  /** The `notes` of its label when it got its slot. */
  readonly notes: Readonly<Record<string, unknown>>;
  readonly on: readonly BackingNode[];
}

/**
 * Whose a resource was that carries no tag of its own, or only as long as what it belongs to: a port names its server, and
 * nobody can ask a deleted server whose it was. Recorded when it is seen beside its tag, and kept for days after the node is gone.
 */
export interface Evidence {
  /** Idempotent; the last tag of an id counts. `type` is as in `Resource`. */
  record(type: string, id: string, tag: Tag): void;
  tagOf(type: string, id: string): Tag | null;
}

/** A structured log: facts first, then one line for people. */
export interface Log {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

/**
 * Proof that a machine answers. Rejects with a DriverError of kind "timeout" or "host-key" (`driverScanner` makes one of a
 * scanner with other errors), or with the signal's reason.
 */
export interface Scanner {
  /** TCP connect and, with `keys`, every host key the server shows as "<type> <base64>", each once. */
  scan(target: {
    readonly host: string;
    readonly port: number;
    readonly keys: boolean;
    readonly timeoutMs: number;
    readonly signal?: AbortSignal;
  }): Promise<{ readonly address: string; readonly family: 4 | 6; readonly hostKeys: readonly string[] }>;
}

/** What a launch is to make. */
export interface CreateOrder {
  readonly tag: Tag;
  /** `np<node id>`: at most 15 characters, as Windows wants. */
  readonly hostname: string;
  readonly pool: PoolConfig;
  readonly label: LabelConfig;
  /** The zone chosen for the nodeset, or null. */
  readonly az: string | null;
  /** The cloud's id of the uploaded image, or null when the label names a cloud image or none. */
  readonly imageExternalId: ExternalId | null;
  /** What templates may use. */
  readonly request: RequestFacts;
  /** 1 for the first try. */
  readonly attempt: number;
  /** The slot that the node was given, with `capabilities.backing`. */
  readonly slot?: GivenSlot;
  /** Where launches are traced: W3C's `traceparent` of this one, for what works on the machine and sends spans itself. */
  readonly traceparent?: string;
}

/** The slot that a launch has been given: it is claimed in the tree already. */
export interface GivenSlot {
  readonly backing: BackingNode;
  /** The backing node as a machine, which is what the slot's own user gets where the driver separates nothing. */
  readonly machine: Machine;
}

/** What drivers learn of the request that a machine is made for. */
export interface RequestFacts {
  readonly id: string;
  readonly labels: readonly string[];
  readonly requestor: string | null;
  readonly requestorData: unknown;
  readonly relativePriority: number;
  readonly eventId: string | null;
  readonly createdTime: number | null;
  readonly tenantName: string | null;
}

/** A machine that is up, as the cloud describes it. */
export interface Machine {
  readonly externalId: ExternalId;
  readonly interfaceIp: string | null;
  readonly publicIpv4?: string | null;
  readonly privateIpv4?: string | null;
  readonly publicIpv6?: string | null;
  readonly privateIpv6?: string | null;
  readonly hostname?: string | null;
  readonly cloud?: string | null;
  readonly region?: string | null;
  readonly az?: string | null;
  readonly hostId?: string | null;
  readonly slot?: number | null;
  readonly resources?: Resources | null;
  /** What it was bought as, in the words of `offers.types`, where a label leaves that to the cloud. */
  readonly type?: string | null;
  readonly driverData?: unknown;
  /** Overrides of what the label's image says. */
  readonly connection?: Partial<Connection>;
  /**
   * What a client logs in with where a node has no port of its own, such as a cluster's address and a token: the record's
   * `connection_port` (docs/contract/records.md). Lists show it to nobody.
   */
  readonly access?: Readonly<Record<string, unknown>>;
  /** Known without a scan; then none is made. */
  readonly hostKeys?: readonly string[];
}

/** Something that exists in the cloud and costs money or can leak. */
export interface Resource {
  /** Alphanumeric, singular: "instance", "port", "volume". */
  readonly type: string;
  readonly id: ExternalId;
  /** Our tag as read back from the resource; null where it carries none or not all of it. */
  readonly tag: Tag | null;
  /** An image that was uploaded for us carries this one instead. */
  readonly imageTag?: ImageTag | null;
  /** A machine that has ended and will not come back: it still takes what it takes until it is removed, and nobody can use it. */
  readonly ended?: boolean;
  /** What it takes of the quota; what belongs to a listed instance counts with that. */
  readonly resources: Resources;
}

/** A node that should exist without anyone having asked (static hosts). */
export interface InventoryItem {
  /** Identity across restarts and reloads; for static: host, username and port. */
  readonly key: string;
  readonly pool: string;
  readonly labels: readonly string[];
  /** How many slots this host offers; each becomes one node record. */
  readonly slots: number;
  /** For `probe`; also what the records show. */
  readonly machine: Machine;
  readonly connection: Connection;
}

/** Whether a host of the inventory answers; if not, why. */
export type ProbeResult =
  | { readonly alive: true; readonly machine: Machine }
  | { readonly alive: false; readonly why: string };

/**
 * One provider of the configuration, opened. Ten methods; each says what holds when it is called twice, when the thing is
 * gone, and when it is cancelled. All errors are DriverErrors (mapped once, at the driver's edge).
 */
export interface Provider {
  /** What this cloud has beyond machines: zones, consoles, images. Absent: nothing. */
  readonly offers?: Offers;
  /**
   * Makes the machine of `order.tag`, as a generator of steps that reads from top to bottom.
   *
   * Twice: after a crash it is entered from the top with the stored `externalId`; each step begins by finding what it
   * already did (by id, else by tag), so that one tag never has two machines. Cancelled: the signal aborts the step;
   * what an abandoned call still makes is found by its tag and deleted. Returns the machine once it is up.
   */
  create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void>;
  /**
   * Unmakes the machine and everything made for its tag. `externalId` may be null (nothing known: look by tag) or
   * a value that an older version stored. Twice, or gone: ends normally. Returns when the cloud no longer has it.
   */
  remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void>;
  /** The machine that carries `tag`, whatever its state; undefined when there is none. */
  find(tag: Tag, signal: AbortSignal): Promise<ExternalId | undefined>;
  /** All resources that this credential can see, others' included. Rejects rather than give a partial list. */
  list(signal: AbortSignal): Promise<readonly Resource[]>;
  /** Deletes one leaked resource. Gone: ends normally. Called only for resources that carry our tag. */
  removeResource(resource: Resource, signal: AbortSignal): Promise<void>;
  /** The limits that the cloud sets on this credential; absent names are unlimited. */
  quota(signal: AbortSignal): Promise<Resources>;
  /** What one node of the label takes. Rejects with kind "configuration" when the label can never work. */
  need(label: LabelConfig, signal: AbortSignal): Promise<Resources>;
  /** Nodes that should exist now. Empty for drivers without the capability. No I/O. */
  inventory(): readonly InventoryItem[];
  /** Contacts an inventory item within its own time-out; never rejects for an answer "no". */
  probe(item: InventoryItem, signal: AbortSignal): Promise<ProbeResult>;
  /** Ends connections and timers. Calls in flight end with an error. Twice: nothing. */
  close(): Promise<void>;
}
