import type { LabelConfig, PoolConfig, ProviderConfig } from "../config/compiled.ts";
import type { CreateOrder, DriverContext, Machine } from "../contract.ts";
import type { RateLimiter } from "../limits/rate-limiter.ts";
import type { UploadOrder } from "../offers.ts";
import type { Place } from "../place.ts";
import type { Resources } from "../resources.ts";
import type { ExternalId, Metadata } from "../tags.ts";

/**
 * The state-machine adapter: the form of drivers in Nodepool's newer framework (docs/contract/drivers.md, "State-machine adapters"), with
 * types. `adapterDriver` makes a driver from it. Names are Nodepool's without "get". Optional methods say what their absence means.
 */
export interface Adapter {
  /** Makes a machine for one node. Called once per attempt. The metadata must be on every resource from the first call to the cloud on. */
  createMachine(order: MachineOrder): StateMachine<Instance>;
  /** Deletes one machine. It may not exist any more, and the id may have the form that an older version stored. */
  deleteMachine(externalId: ExternalId): StateMachine<void>;
  /** All instances of the account, also those of others, with their metadata and their use of the quota. */
  listInstances(signal: AbortSignal): Promise<readonly Instance[]>;

  /** Continues a machine that a launcher began before it died. Absent: the begun machine is deleted and a new one is made. */
  resumeMachine?(order: MachineOrder, externalId: ExternalId): StateMachine<Instance>;
  /** Other resources that can leak: ports, volumes, uploaded images. Instances may be left out. */
  listResources?(signal: AbortSignal): Promise<readonly AdapterResource[]>;
  /** Deletes a leaked resource, or starts its deletion. Called again for as long as the resource is listed. */
  deleteResource?(resource: AdapterResource, signal: AbortSignal): Promise<void>;
  /** Absent method or absent name: no limit. */
  quotaLimits?(signal: AbortSignal): Promise<Resources>;
  /** Absent: one instance. A DriverError of kind "configuration" takes the label out of service. */
  quotaForLabel?(label: LabelConfig, signal: AbortSignal): Promise<Resources>;
  /** Whether the label's cloud image can be used. */
  labelReady?(label: LabelConfig, signal: AbortSignal): Promise<boolean>;
  /** Where the instances are, as `Provider.place`. Absent: a provider always looks in the same place. */
  place?(): Place;
  zones?(pool: PoolConfig, signal: AbortSignal): Promise<readonly string[]>;
  /** Formats that `uploadImage` takes, the preferred one first. Default: qcow2. */
  readonly imageFormats?: readonly string[];
  uploadImage?(order: ImageOrder, signal: AbortSignal): Promise<ExternalId>;
  /** An image that does not exist is no error. */
  deleteImage?(externalId: ExternalId, signal: AbortSignal): Promise<void>;
  consoleLog?(externalId: ExternalId, signal: AbortSignal): Promise<string | null>;
  stop?(): Promise<void>;
}

/** The machine to make. The adapter stores `metadata` with it in the cloud, so that it can be found again. */
export interface MachineOrder extends Omit<CreateOrder, "tag"> {
  readonly metadata: Metadata;
}

/** `name`, `file` and so on are as in an UploadOrder; the metadata contains the tag. */
export interface ImageOrder extends Omit<UploadOrder, "tag"> {
  readonly image: string;
}

/**
 * `advance` is called about once a second until `complete`. It returns soon, and may be called once more afterwards. A change of `state`
 * is a new step for `explain`. `externalId` is saved as soon as it is set, and again whenever it changes.
 */
export interface StateMachine<Result> {
  readonly state: string;
  readonly externalId: ExternalId | null;
  readonly complete: boolean;
  /** Returns the result with the call that completes the machine. Every wait in it must end when the signal aborts. */
  advance(signal: AbortSignal): Promise<Result | undefined> | Result | undefined;
}

/** A machine as the cloud describes it. Its name is that of the order; `quota` is its use of the quota. */
export interface Instance extends Omit<Machine, "hostname" | "resources"> {
  readonly metadata: Metadata;
  /** The machine runs, as far as the cloud can tell. */
  readonly ready: boolean;
  /** The cloud reports a failure: the machine is deleted, not resumed. */
  readonly failed?: boolean;
  /** The machine is deleted, although the cloud still lists it. */
  readonly deleted: boolean;
  readonly quota: Resources;
}

/** A resource of the cloud. Its metadata says to which node or upload it belongs. */
export interface AdapterResource {
  /** Alphanumeric, singular; "image" for what `uploadImage` made. */
  readonly type: string;
  readonly id: ExternalId;
  readonly metadata: Metadata;
}

/** The handles of an adapter. */
export interface AdapterContext extends DriverContext {
  /** The provider's rate limit (`rate`). Call `turn` before each call to the cloud. */
  readonly limiter: RateLimiter;
}

/** Makes the adapter of one provider. An error says why the provider could not be opened. */
export type AdapterOf<Config extends ProviderConfig> = (
  config: Config,
  context: AdapterContext,
) => Promise<Adapter> | Adapter;
