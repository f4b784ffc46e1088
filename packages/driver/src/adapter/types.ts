import type { LabelConfig, PoolConfig, ProviderConfig } from "../config/compiled.ts";
import type { CreateOrder, DriverContext, Machine } from "../contract.ts";
import type { RateLimiter } from "../limits/rate-limiter.ts";
import type { UploadOrder } from "../offers.ts";
import type { Resources } from "../resources.ts";
import type { ExternalId, Metadata } from "../tags.ts";

/**
 * The state-machine adapter: the way drivers of Nodepool's newer framework are written (docs/contract/drivers.md, "State-machine
 * adapters"), typed. `adapterDriver` makes a driver of one. Names are the old ones without "get"; what may be left out says so.
 */
export interface Adapter {
  /** One machine for one node. Called anew for each attempt; the metadata must be on what it makes from the first call on. */
  createMachine(order: MachineOrder): StateMachine<Instance>;
  /** Ends one machine. The id may be gone already, or have the shape that an older version stored. */
  deleteMachine(externalId: ExternalId): StateMachine<void>;
  /** Everything in the account, others' too, with its metadata and what it takes of the quota. */
  listInstances(signal: AbortSignal): Promise<readonly Instance[]>;

  /** Goes on with a machine that a launcher which died has begun. Absent: what was begun is deleted and made anew. */
  resumeMachine?(order: MachineOrder, externalId: ExternalId): StateMachine<Instance>;
  /** What else could leak: ports, volumes, uploaded images. Instances need not be in it. */
  listResources?(signal: AbortSignal): Promise<readonly AdapterResource[]>;
  /** Starts or does the deletion of a leaked resource; called again while it is listed. */
  deleteResource?(resource: AdapterResource, signal: AbortSignal): Promise<void>;
  /** Absent, or a name absent in it: no limit. */
  quotaLimits?(signal: AbortSignal): Promise<Resources>;
  /** Absent: one instance. A DriverError of kind "configuration" takes the label out. */
  quotaForLabel?(label: LabelConfig, signal: AbortSignal): Promise<Resources>;
  /** Whether the label's cloud image can be used. */
  labelReady?(label: LabelConfig, signal: AbortSignal): Promise<boolean>;
  zones?(pool: PoolConfig, signal: AbortSignal): Promise<readonly string[]>;
  /** Formats that `uploadImage` takes, the preferred one first. Default: qcow2. */
  readonly imageFormats?: readonly string[];
  uploadImage?(order: ImageOrder, signal: AbortSignal): Promise<ExternalId>;
  /** Gone already is as good. */
  deleteImage?(externalId: ExternalId, signal: AbortSignal): Promise<void>;
  consoleLog?(externalId: ExternalId, signal: AbortSignal): Promise<string | null>;
  stop?(): Promise<void>;
}

/** What machine to make; `metadata` goes with it to the cloud, so that it can be found again. */
export interface MachineOrder extends Omit<CreateOrder, "tag"> {
  readonly metadata: Metadata;
}

/** `name`, `file` and the like as in an UploadOrder; the metadata has the tag in it. */
export interface ImageOrder extends Omit<UploadOrder, "tag"> {
  readonly image: string;
}

/**
 * Advanced about once a second until `complete`. `advance` returns soon, and may be called once more afterwards. A
 * change of `state` is a new step for `explain`; `externalId` is stored as soon as it is there, and whenever it grows.
 */
export interface StateMachine<Result> {
  readonly state: string;
  readonly externalId: ExternalId | null;
  readonly complete: boolean;
  /** What the machine has made, with the call that completes it. Every wait in it ends with the signal. */
  advance(signal: AbortSignal): Promise<Result | undefined> | Result | undefined;
}

/** A machine as the cloud shows it. Its name is the order's, and what it takes of the quota is in `quota`. */
export interface Instance extends Omit<Machine, "hostname" | "resources"> {
  readonly metadata: Metadata;
  /** It runs, as far as the cloud can tell. */
  readonly ready: boolean;
  /** The cloud has given it up: it is deleted, not resumed. */
  readonly failed?: boolean;
  /** Still listed, but gone. */
  readonly deleted: boolean;
  readonly quota: Resources;
}

/** Something that exists in the cloud. Whose it is follows from its metadata. */
export interface AdapterResource {
  /** Alphanumeric, singular; "image" for what `uploadImage` made. */
  readonly type: string;
  readonly id: ExternalId;
  readonly metadata: Metadata;
}

/** What an adapter is given of its surroundings. */
export interface AdapterContext extends DriverContext {
  /** One turn for each call to the cloud: the provider's `rate`. */
  readonly limiter: RateLimiter;
}

/** Makes the adapter of one provider; what it throws is why the provider could not be opened. */
export type AdapterOf<Config extends ProviderConfig> = (
  config: Config,
  context: AdapterContext,
) => Promise<Adapter> | Adapter;
