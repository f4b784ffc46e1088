import type { LabelConfig, PoolConfig } from "./config/compiled.ts";
import type { CreateOrder, Machine } from "./order.ts";
import type { Resources } from "./resources.ts";
import type { Step, StepContext } from "./run-steps.ts";
import type { SliverMachine } from "./sliver-machine.ts";
import type { ExternalId, ImageTag, Tag } from "./tags.ts";

/**
 * Optional features of a provider. It omits those that its cloud does not have, and callers must work without them. All errors are
 * DriverErrors, as for the provider's methods.
 */
export interface Offers {
  readonly zones?: Zones;
  readonly types?: Types;
  readonly prices?: Prices;
  readonly console?: Console;
  readonly images?: ImageStore;
  readonly handover?: Handover;
  readonly suspension?: Suspension;
  readonly slots?: SlotOffer;
  readonly slivers?: SliverOffer;
  /** The state of the provider's own rate limit. No I/O. */
  readonly pace?: { now(): Pace };
}

/** A rate limit at one moment; a RateLimiter implements it. */
export interface Pace {
  /** Calls that wait for their turn. */
  readonly waiting: number;
  /** How many more calls may wait before calls are refused. */
  readonly free: number;
  /** Time between two calls, milliseconds: the configured one, or more while the cloud demands it. */
  readonly intervalMs: number;
}

/** The machines of a provider whose nodes are slivers. */
export interface SliverOffer {
  /**
   * Every machine of the provider as it is now, also those that do not answer. Called when a user looks; limited to a few
   * seconds. A machine that does not answer has an `error`.
   */
  machines(signal: AbortSignal): Promise<readonly SliverMachine[]>;
}

/** How nodes of other providers are divided into slots. The label alone decides, so no provider has to be open. */
export interface SlotRules {
  of(label: LabelConfig): SlotSettings;
  /** As `need` of a provider. Throws "configuration" for a label that can never be served. */
  need(label: LabelConfig): Resources;
}

/** The content of slots, where it can outlive them. */
export interface SlotOffer {
  /**
   * Removes from backing nodes what belongs to slots without a node. One launcher at a time calls it: when it starts to manage
   * the provider, about every minute, and when a node ended without freeing its slot.
   */
  compare(signal: AbortSignal): Promise<void>;
}

/** How the slots of one label are made from backing nodes. Times are milliseconds. */
export interface SlotSettings {
  /** Label by which backing nodes are requested. */
  readonly backingLabel: string;
  /** Slots per backing node; 0: the label is never served. */
  readonly slots: number;
  /** How long an empty backing node is kept. */
  readonly graceMs: number;
  /** Least time that a backing node is kept. */
  readonly minRetentionMs: number;
  /** Age from which a backing node takes no more slots; Infinity: no such age. */
  readonly maxAgeMs: number;
  /** Caches of each slot, by name and the parts of their keys. */
  readonly caches?: readonly { readonly name: string; readonly key: readonly string[] }[];
  /** Stored in the record of each node with such a slot, before `create` is called. */
  readonly notes?: Readonly<Record<string, unknown>>;
}

/**
 * Machines that are put aside with their disk and are there again sooner than new ones: spares that cost less. Both are generators with the
 * duties of `create`, and a machine may be removed at any point of them. A machine that is put aside is listed as before.
 */
export interface Suspension {
  /** Puts the machine of a tag aside; returns when it is, as the cloud says, or was before. Rejects with kind "not-found" when there is none. */
  suspend(tag: Tag, context: StepContext): AsyncGenerator<Step, void, void>;
  /**
   * Returns the machine of `order.tag` once it is up again. Its disk, and so its host keys, are those of before; its addresses may be others. One
   * that is up is no error. Rejects with kind "not-found" when there is none: it is not made anew.
   */
  wake(order: CreateOrder, context: StepContext): AsyncGenerator<Step, Machine, void>;
}

/** Availability zones. */
export interface Zones {
  /**
   * The zones for pools that name none, sorted; empty where the cloud has none, so that it is not asked for one. Called when the provider opens
   * and at every slow refresh. All nodes of a nodeset are in one zone.
   */
  list(pool: PoolConfig, signal: AbortSignal): Promise<readonly string[]>;
}

/** The types of machines that the cloud sells. */
export interface Types {
  /**
   * The type of a label's machines: flavor, and market where there are several. Labels of one type share a breaker: when launches of the
   * type fail in a row, it is not launched for a while. Absent: each label has its own breaker. No I/O.
   */
  of(label: LabelConfig): string;
}

/** What something costs. */
export interface Price {
  readonly perHour: number;
  /** Code of ISO 4217. */
  readonly currency: string;
}

/** The cloud's prices. */
export interface Prices {
  /**
   * Price per hour of a type (`types`) in a zone, or with null in the most expensive zone; null: the cloud does not say. Prices of the
   * file take precedence. Called after each launch and every few minutes, so the driver should cache its answers.
   */
  of(type: string, az: string | null, signal: AbortSignal): Promise<Price | null>;
}

/** Consoles of machines. */
export interface Console {
  /** The console output of a machine, or its end if it is long; null: there is none, or no more. */
  read(tag: Tag, context: StepContext): Promise<string | null>;
}

/** What happens to a machine between two clients. */
export interface Handover {
  /**
   * Called before a ready node that no client had is delivered. Resolves when the machine is in the state that its client may expect, for
   * instance when lent amounts are back. Limited to half a minute. Idempotent. When it rejects or is late, the node is not delivered but
   * taken out of service, and the request is planned again.
   */
  ready(tag: Tag, context: StepContext): Promise<void>;
  /**
   * Called after `ready`, within the same half minute, for machines whose `access` expires: returns a new one, which is recorded before the
   * node is delivered. Undefined: the present one stays valid.
   */
  access?(tag: Tag, context: StepContext): Promise<Readonly<Record<string, unknown>> | undefined>;
  /**
   * Called about every minute, for machines that do other work while no client uses them, because a node can return from a
   * request to the free nodes without a call. `uses` reads from the tree, at the time of its call, how nodes are used; nodes of
   * others are missing in its result. A driver that first looks at a machine and then calls `uses` knows for an "unused" node
   * that a call of `ready`, if any, comes after its look.
   */
  reconcile?(uses: NodeUses, signal: AbortSignal): Promise<void>;
}

/** How a node is used: a client has it or may inspect it; it is ready and free; or it is changing between the two. */
export type NodeUse = "used" | "unused" | "between";

/** Returns the use of nodes by node id. */
export type NodeUses = (tags: readonly Tag[]) => Promise<ReadonlyMap<string, NodeUse>>;

/** An image to upload. */
export interface UploadOrder {
  readonly tag: ImageTag;
  /** Name of the image in the cloud, from the provider's `image-name-format`. */
  readonly name: string;
  /** The image file on this host. It is neither changed nor removed while the upload runs. */
  readonly file: string;
  /** One of `ImageStore.formats`. */
  readonly format: string;
  /** Bytes. */
  readonly size: number;
  readonly sha256: string;
  readonly md5: string;
  /** The image's `metadata` with the provider's `meta` or `tags` over it; the driver adds the tag. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The driver's own part of the provider's `diskimages` entry. */
  readonly own: unknown;
  /** Reports the number of bytes sent, as often as the driver likes, but at least at the end. */
  progress(sent: number): void;
}

/** Where images are uploaded. Its generators have the same duties as `create` and `remove`. */
export interface ImageStore {
  /** Accepted formats in the builder's names ("qcow2", "raw", "vhd"), the preferred one first. */
  readonly formats: readonly string[];
  /**
   * Uploads an image and waits until it can be booted. Called again after a crash: it starts from the top with the stored `externalId`
   * and first looks for what it has done already, so that one tag never has two images.
   */
  upload(order: UploadOrder, context: StepContext): AsyncGenerator<Step, ExternalId, void>;
  /** Deletes the image of the tag and everything that was made to upload it. A second call, or a missing image, is no error. */
  remove(tag: ImageTag, context: StepContext): AsyncGenerator<Step, void, void>;
}
