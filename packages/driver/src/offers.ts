import type { LabelConfig, PoolConfig } from "./config/compiled.ts";
import type { Machine } from "./contract.ts";
import type { Resources } from "./resources.ts";
import type { Step, StepContext } from "./run-steps.ts";
import type { ExternalId, ImageTag, Tag } from "./tags.ts";

/**
 * What some clouds have beyond machines. A provider leaves out what its cloud has not; whoever asks must do without.
 * All errors are DriverErrors, as of the provider's methods.
 */
export interface Offers {
  readonly zones?: Zones;
  readonly types?: Types;
  readonly prices?: Prices;
  readonly console?: Console;
  readonly images?: ImageStore;
  readonly handover?: Handover;
  readonly slots?: SlotOffer;
  readonly slivers?: SliverOffer;
  /** How the provider's own rate limit is used. No I/O. */
  readonly pace?: { now(): Pace };
}

/** A rate limit at one moment; a RateLimiter is one. */
export interface Pace {
  /** Calls that wait for their turn. */
  readonly waiting: number;
  /** How many more may wait before calls are refused. */
  readonly free: number;
  /** Between two calls, milliseconds: what is configured, or more while the cloud asks for it. */
  readonly intervalMs: number;
}

/** Machines of which nodes are shares. */
export interface SliverOffer {
  /**
   * Every machine of the provider, those that do not answer included, as it is now. Asked when somebody looks, and bounded by a few
   * seconds: a machine that is silent has an `error`.
   */
  machines(signal: AbortSignal): Promise<readonly SliverMachine[]>;
}

/** A machine with its slivers. */
export interface SliverMachine {
  readonly name: string;
  /** Why nothing is known of it, or nothing is done to it; null: it answers. */
  readonly error: string | null;
  /** What it guarantees at most, and what it does; names as in the provider's quota. */
  readonly capacity: Resources;
  readonly guaranteed: Resources;
  /** What no sliver has is among them while somebody borrows it: its `use` is "free". */
  readonly slivers: readonly {
    readonly name: string;
    /** Null: it is no node of this installation. */
    readonly node: string | null;
    readonly use: "busy" | "idle" | "free";
    readonly phase: string;
    /** What is being done to it now. */
    readonly doing: string | null;
    readonly error: string | null;
    /** What explains how its jobs fare, in the words of an operator: kills for memory, a used up budget. */
    readonly remarks: readonly string[];
    /** What it uses; names and units as in the sliver manager's reports. */
    readonly usage: Resources;
    readonly guarantees: Resources;
    /** By the sliver manager's own names and units: what it was given, and what loans make of that. */
    readonly rspec: Resources;
    readonly effective: Resources;
    /** To slivers of the same machine; `refused` says why one is not in force. */
    readonly loans: readonly {
      readonly to: string;
      readonly resource: string;
      readonly amount: number;
      readonly refused: string | null;
    }[];
  }[];
}

/** How nodes of other providers are cut into slots; needed with `capabilities.backing`. */
export interface SlotOffer {
  /** No I/O. */
  of(label: LabelConfig): SlotSettings;
  /**
   * Ends what is left on backing nodes of slots that nobody has any more. By one launcher at a time, when it begins to look after the
   * provider, every minute or so, and when a node went without freeing its slot.
   */
  compare?(signal: AbortSignal): Promise<void>;
}

/** How one label is cut out of backing nodes. Times are milliseconds. */
export interface SlotSettings {
  /** Label of the backing node, by which it is asked for. */
  readonly backingLabel: string;
  /** Slots of one backing node; 0: the label is never served. */
  readonly slots: number;
  /** An empty backing node is kept this long. */
  readonly graceMs: number;
  /** A backing node is kept at least this long. */
  readonly minRetentionMs: number;
  /** From this age on a backing node takes no more slots; Infinity: at any age it does. */
  readonly maxAgeMs: number;
  /** Kept in the record of each node with such a slot, from before `create` on. */
  readonly notes?: Readonly<Record<string, unknown>>;
}

/** Availability zones. */
export interface Zones {
  /**
   * The zones a pool that names none may use, sorted and not empty. Asked when the provider opens and at every slow
   * refresh; a nodeset stays in one of them.
   */
  list(pool: PoolConfig, signal: AbortSignal): Promise<readonly string[]>;
}

/** What machines are bought as. */
export interface Types {
  /**
   * What machines of the label are bought as in one place: flavour, and market where there are several. Labels of one type
   * share their luck: when launches of one fail in a row, none is launched for a while. Absent: each label alone. No I/O.
   */
  of(label: LabelConfig): string;
}

/** What something costs. */
export interface Price {
  readonly perHour: number;
  /** Code of ISO 4217. */
  readonly currency: string;
}

/** What the cloud asks for machines. */
export interface Prices {
  /**
   * An hour of a machine of a type as `types` names it, in a zone or, with null, in the dearest one; null: the cloud does not say it. What
   * the file says of the type counts before it. Asked after each launch and every few minutes, so keep what it answers for a while.
   */
  of(type: string, az: string | null, signal: AbortSignal): Promise<Price | null>;
}

/** Consoles of machines. */
export interface Console {
  /** What the machine wrote to its console, its end if there is much; null: there is none (any more). */
  read(tag: Tag, context: StepContext): Promise<string | null>;
}

/** What happens between two users of a machine. */
export interface Handover {
  /**
   * Before a ready node that nobody had is delivered: resolves when its machine is as its next user may expect it, for instance when it
   * has back what it lent. Bounded by half a minute. Twice: the same. One that rejects, or is late, is not delivered: its node is taken
   * out, and the request is planned anew.
   */
  ready(tag: Tag, context: StepContext): Promise<void>;
  /**
   * After `ready`, in the same half minute, where machines have an `access` that ends: a new one, which goes to the record before it is
   * delivered. Undefined: the present one lasts.
   */
  access?(tag: Tag, context: StepContext): Promise<Machine["access"]>;
  /**
   * Every minute or so, for machines that do something else while nobody uses them: a node that comes back from a request is nobody's
   * again without a word. `uses` reads from the tree itself, when it is called, how nodes are used; those of others are missing in what it
   * resolves with. Whoever looks at a machine first and asks then knows of an "unused" node that `ready` is called for it after that
   * look, if at all.
   */
  reconcile?(uses: NodeUses, signal: AbortSignal): Promise<void>;
}

/** How a node is used: somebody has it or may look at it, it is ready and nobody's, or it is on its way to either. */
export type NodeUse = "used" | "unused" | "between";

/** By node id. */
export type NodeUses = (tags: readonly Tag[]) => Promise<ReadonlyMap<string, NodeUse>>;

/** What an upload is to make. */
export interface UploadOrder {
  readonly tag: ImageTag;
  /** What the cloud shall call it: the provider's `image-name-format` filled in. */
  readonly name: string;
  /** The image on this host. Not changed and not removed while the upload runs. */
  readonly file: string;
  /** One of `ImageStore.formats`. */
  readonly format: string;
  /** Bytes. */
  readonly size: number;
  readonly sha256: string;
  readonly md5: string;
  /** The image's `metadata` overlaid by the provider's `meta` or `tags`; without the tag, which the driver adds. */
  readonly metadata: Readonly<Record<string, string>>;
  /** What the provider's `diskimages` entry says that only the driver understands. */
  readonly own: unknown;
  /** Called as often as the driver likes, at least at the end. */
  progress(sent: number): void;
}

/** Where images are uploaded to. Generators with the same duties as `create` and `remove`. */
export interface ImageStore {
  /** Formats that uploads may have, as the builder calls them ("qcow2", "raw", "vhd"), the preferred one first. */
  readonly formats: readonly string[];
  /**
   * Uploads and waits until the image can be booted. Twice: after a crash it is entered from the top with the stored
   * `externalId` and begins by finding what it already did, so that one tag never has two images.
   */
  upload(order: UploadOrder, context: StepContext): AsyncGenerator<Step, ExternalId, void>;
  /** Deletes the image of the tag and all that was made to upload it. Twice, or gone: ends normally. */
  remove(tag: ImageTag, context: StepContext): AsyncGenerator<Step, void, void>;
}
