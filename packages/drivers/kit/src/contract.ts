import type { Clock, Random } from "@nodeyard/runtime";
import type { Connection, LabelConfig, ProviderConfig } from "./config/compiled.ts";
import type { DriverConfig } from "./config/driver-config.ts";
import type { NodeUse, Offers, SlotRules } from "./offers.ts";
import type { BackingNode, CreateOrder, Machine } from "./order.ts";
import type { Place } from "./place.ts";
import type { Resources } from "./resources.ts";
import type { Step, StepContext } from "./run-steps.ts";
import type { ExternalId, ImageTag, Tag } from "./tags.ts";

/** A driver. It makes and deletes machines and reports what it sees. It never writes the tree, never chooses a node and never decides policy. */
export interface Driver<Config extends ProviderConfig = ProviderConfig> {
  /** The driver's name for `driver:` in the configuration: lower-case letters, digits and dashes. */
  readonly name: string;
  /** Number of the contract for which it was written. A launcher with another contract does not load it. */
  readonly contract: 1;
  readonly capabilities: Capabilities;
  readonly config: DriverConfig<Config>;
  /**
   * For drivers whose nodes are slots on nodes of other providers. The launcher obtains those, gives each node a slot before `create`,
   * and frees the slot after `remove`. Absent: its nodes are machines of its own.
   */
  readonly slots?: SlotRules;
  /** The log of its lines and of its calls; the loader of drivers sets it. Absent: the log of the part that opens a provider. */
  readonly log?: Log;
  /** Connects. May reject with a DriverError: the provider is then left out, and opening is retried with back-off. */
  open(config: Config, context: DriverContext): Promise<Provider>;
}

/** What a driver can do. The launcher decides by these flags only. */
export interface Capabilities {
  /** It can launch new machines. False: it offers only the machines of its inventory. */
  readonly launches: boolean;
  /** It lists existing machines that should be nodes (`inventory`). */
  readonly inventory: boolean;
  /** It can check whether a machine is reachable (`probe`). */
  readonly probes: boolean;
  /** Its resources carry Nodeyard's tag, so that `find`, `list` and the leak sweep work. */
  readonly tags: boolean;
  /** Its machines may run on the launcher's own host and reach its loopback, so nothing may listen there without a token (rule 11). Default false. */
  readonly local?: boolean;
}

/** The handles of a driver. In a simulation all of them are simulated. */
export interface DriverContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly scan: Scanner;
  /** The installation's UUID (`/nodeyard/installation`). Every resource that the driver makes must carry it. */
  readonly installation: string;
  /**
   * "look": opened by a command, a builder or a forecast, perhaps with another copy of the configuration, while launchers serve the provider.
   * Then neither `open` nor anything in the background writes, deletes, or takes a message that others wait for; lists and questions tidy
   * nothing. Methods that write do so when they are called: a builder uploads images. Default: "serve".
   */
  readonly purpose?: Purpose;
  /** Records tags for resources that cannot carry one. Absent: nothing is kept beyond the process. */
  readonly evidence?: Evidence;
  /** Folder for files that outlive the process; absent: there is none. */
  readonly stateFolder?: string;
  /** The backing nodes of the provider. Absent: it is not a launcher that opens the provider. */
  readonly backings?: Backings;
  /**
   * Reports a fact that explains how jobs on a machine fared, when the driver learns it: "the cloud takes it back". Users of slots on the
   * machine learn it, too. `leaves`: the machine ends soon, so it gets no new users. Optional.
   */
  readonly remark?: (about: Tag, text: string, leaves?: boolean) => void;
  /**
   * Reports that a part of the provider does not work, while the rest serves: why, and what is done meanwhile; null: it works (again). How
   * the provider stands shows it. Optional.
   */
  readonly impaired?: (part: string, why: string | null) => void;
  /** Reports each finished request to the cloud's API, for metrics. Optional. */
  readonly observe?: (call: ApiCall) => void;
}

/** Why a provider is opened. */
export type Purpose = "serve" | "look";

/** A finished request to a cloud's API. Each try counts; the wait for the rate limit does not. */
export interface ApiCall {
  /** Service, method and resource, without ids: `compute.GET.servers.detail`. Few values, because each makes a metric series. */
  readonly operation: string;
  /** The HTTP status; `none` when there was no reply. */
  readonly result: string;
  /** Why there was no reply. While a provider is being opened, it is shown at once: the driver may try again for a minute. */
  readonly error?: unknown;
  readonly ms: number;
}

/** The backing nodes of a provider, from the tree. */
export interface Backings {
  all(): readonly BackingNode[];
  /** A node with a slot, and where the slot is. Undefined: there is no such node. */
  of(nodeId: string): SlotOwner | undefined;
  /** Whether a backing node takes no more slots. */
  isRetired(id: string): boolean;
  /** Tells which caches of this installation a backing node has (`cacheText`, without the installation): slots of requests with one go there. */
  noteCaches(id: string, caches: ReadonlySet<string>): void;
  /** Marks a backing node so that it takes no more slots. Idempotent. */
  retire(id: string, why: string): Promise<void>;
  /**
   * The nodes that have a slot on a backing node, read from the tree. With `how` it also reads how each is used; otherwise it says
   * "between". A slot is taken before `create` and freed after `remove`. So whatever a driver saw on the machine before this call is left
   * over if its node is missing in the result.
   */
  uses(id: string, how: boolean): Promise<ReadonlyMap<string, NodeUse>>;
}

/** A node that has a slot, or had one when its launch was interrupted, and the backing nodes on which it may have left something. */
export interface SlotOwner {
  readonly label: string;
  /** The `notes` of its label at the time when it got the slot. */
  readonly notes: Readonly<Record<string, unknown>>;
  readonly on: readonly BackingNode[];
}

/**
 * Tags of resources that carry none themselves, or only as long as their parent exists: a port names its server, but a deleted server
 * cannot be asked for its tag. A tag is recorded when resource and tag are seen together, and kept for days after the node is gone.
 */
export interface Evidence {
  /** Idempotent. A later tag for the same id replaces the earlier one. `type` is as in `Resource`. */
  record(type: string, id: string, tag: Tag): void;
  tagOf(type: string, id: string): Tag | null;
}

/** A structured log: facts first, then a line of text for people. */
export interface Log {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
}

/**
 * Proves that a machine answers. Rejects with a DriverError of kind "timeout" or "host-key" (`driverScanner` adapts scanners with
 * other errors), or with the signal's reason.
 */
export interface Scanner {
  /** Connects by TCP. With `keys` it returns every host key that the server shows, as "<type> <base64>" and without duplicates. */
  scan(target: {
    readonly host: string;
    readonly port: number;
    readonly keys: boolean;
    readonly timeoutMs: number;
    readonly signal?: AbortSignal;
  }): Promise<{ readonly address: string; readonly family: 4 | 6; readonly hostKeys: readonly string[] }>;
}

/** A resource of the cloud that costs money or can leak. */
export interface Resource {
  /** Alphanumeric, singular: "instance", "port", "volume". */
  readonly type: string;
  readonly id: ExternalId;
  /** The tag read back from the resource; null when it has none or an incomplete one. */
  readonly tag: Tag | null;
  /** The tag of an uploaded image, which has no `tag`. */
  readonly imageTag?: ImageTag | null;
  /** The machine will not run again by itself, so that no client can use it: it has ended, or it is suspended. It uses its quota until it is removed. */
  readonly ended?: boolean;
  /** Its use of the quota. Parts of a listed instance count with the instance. */
  readonly resources: Resources;
}

/** A machine that should be a node although no request asked for it (static hosts). */
export interface InventoryItem {
  /** Identity over restarts and reloads; for static hosts: host, user name and port. */
  readonly key: string;
  readonly pool: string;
  readonly labels: readonly string[];
  /** Number of slots of this host. Each becomes a node record. */
  readonly slots: number;
  /** For `probe`, and for the node records. */
  readonly machine: Machine;
  readonly connection: Connection;
}

/** Whether a host of the inventory answers, and if not, why. */
export type ProbeResult =
  | { readonly alive: true; readonly machine: Machine }
  | { readonly alive: false; readonly why: string };

/**
 * A provider of the configuration, opened. It has ten methods and `place`. Each documents what a second call does, what happens when the
 * object is gone, and what cancelling does. All errors are DriverErrors, translated once at the driver's edge.
 */
export interface Provider {
  /** Optional features of this cloud: zones, consoles, images. */
  readonly offers?: Offers;
  /**
   * Where the machines are that this provider sees, known since it opened; no I/O. Records of nodes keep it, and nodes of another place
   * are neither taken for gone nor given out. Absent: its machines can be nowhere else, or each names its place itself.
   */
  readonly place?: () => Place;
  /**
   * Makes the machine of `order.tag`, as a generator of steps.
   *
   * Called again after a crash: it starts from the top with the stored `externalId`. Each step first looks for what it has done
   * already (by id, else by tag), so that one tag never has two machines. Cancelled: the signal aborts the step; a machine that an
   * abandoned call still makes is found by its tag and deleted. Returns the machine once it is up.
   */
  create(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void>;
  /**
   * Deletes the machine and everything that was made for its tag. `externalId` may be null (unknown: look by tag), or have the
   * form of an older version. A second call, or a machine that is gone, is no error. Returns when the cloud no longer has it.
   */
  remove(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void>;
  /**
   * The machine with `tag`, in any state; undefined when there is none. `stored`: the id in the node's record, which is read by itself where
   * the tag finds nothing: tags get lost, and lists are incomplete. Before a record goes, its machine has to be gone by both.
   */
  find(tag: Tag, signal: AbortSignal, stored?: ExternalId | null): Promise<ExternalId | undefined>;
  /** All resources that the credential can see, also those of others. Rejects rather than return a partial list, which would look like leaks. */
  list(signal: AbortSignal): Promise<readonly Resource[]>;
  /**
   * Deletes one leaked resource, or only requests it where that takes long: it is called again by each sweep that finds the resource. One that
   * is gone is no error. Called only for resources with a tag of this installation.
   */
  removeResource(resource: Resource, signal: AbortSignal): Promise<void>;
  /** The limits that the cloud sets for this credential. A missing name means no limit. */
  quota(signal: AbortSignal): Promise<Resources>;
  /** The resources that one node of the label uses. Rejects with kind "configuration" when the label can never work. */
  need(label: LabelConfig, signal: AbortSignal): Promise<Resources>;
  /** Machines that should be nodes now. Empty for drivers without the capability. No I/O. */
  inventory(): readonly InventoryItem[];
  /** Contacts a host of the inventory, with a time limit of its own. A host that does not answer is a result, not an error. */
  probe(item: InventoryItem, signal: AbortSignal): Promise<ProbeResult>;
  /** Ends connections and timers. Calls in progress end with an error. A second call has no effect. */
  close(): Promise<void>;
}
