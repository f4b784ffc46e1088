import {
  type Clock,
  DriverError,
  type ExternalId,
  type Metadata,
  machineName,
  NodeMachines,
  type OwnList,
  type Random,
  wasRefused,
} from "@nodeyard/driver";
import type { Google, Operation } from "../client/google.ts";
import { ofOrder, operationError } from "../errors.ts";

/** A machine, as far as the driver reads it. Zone, type and disks are addresses. */
export interface Instance {
  readonly name: string;
  readonly zone: string;
  readonly status: string;
  readonly machineType: string;
  readonly metadata?: { readonly items?: readonly { readonly key: string; readonly value?: string }[] };
  readonly scheduling?: { readonly provisioningModel?: string };
  readonly disks?: readonly { readonly source?: string; readonly diskSizeGb?: string }[];
  readonly networkInterfaces?: readonly {
    readonly networkIP?: string;
    readonly accessConfigs?: readonly { readonly natIP?: string }[];
  }[];
}

/** Time limit of a create that goes on after its caller gave up, with its wait for a full minute's quota, milliseconds. */
const CREATE_MS = 300_000;
/** Operations of inserts that are remembered. */
const MOST_OPERATIONS = 10_000;
/** States in which a machine will not run again by itself. `TERMINATED` is stopped: it still has a disk that is paid for. */
const ENDED = /^(STOPPING|PENDING_STOP|STOPPED|SUSPENDING|SUSPENDED|TERMINATED|DEPROVISIONING)$/;

/** The last part of an address: a zone, a type, a name. */
export function last(address: string): string {
  return address.slice(address.lastIndexOf("/") + 1);
}

/** How records name a machine: zone and name. */
export function idOf({ zone, name }: Pick<Instance, "zone" | "name">): string {
  return `${last(zone)}/${name}`;
}

/** The id in a record of this driver, or of Nodepool's, which has the name alone and one zone, if any. Images and objects have paths. */
export function idIn(externalId: ExternalId | null, zone: string | null): string | undefined {
  if (typeof externalId !== "string") return undefined;
  const id = externalId.includes("/") || zone === null ? externalId : `${zone}/${externalId}`;
  return /^(([a-z0-9-]+\/)?[a-z0-9-]+|(projects|nodeyard)\/[\w./:%!~*'()-]+)$/.test(id) ? id : undefined;
}

export function hasEnded({ status }: Instance): boolean {
  return ENDED.test(status);
}

export function metadataOf({ metadata }: Instance): Metadata {
  return Object.fromEntries((metadata?.items ?? []).map(({ key, value = "" }) => [key, value]));
}

/** Path of a machine for a call. */
export function pathOf(id: string): string {
  const [zone, name] = id.split("/");
  return `/zones/${zone}/instances/${name}`;
}

/** The machines of nodes in every zone of the region, and the operations that make them. */
export class Instances extends NodeMachines<Instance> {
  readonly #google: Google;
  readonly #random: Random;
  readonly #operations = new Map<string, Operation>();
  /** Ids of which the operation said that there is no machine: they need no read. */
  readonly #failed: Set<string>;

  constructor(parts: {
    readonly google: Google;
    readonly clock: Clock;
    readonly random: Random;
    readonly watch: OwnList<Instance>;
    /** The provider's zone, in which Nodepool's machines are. */
    readonly zone: string | null;
    readonly closed: AbortSignal;
  }) {
    const { google, random, clock, watch, zone, closed } = parts;
    const failed = new Set<string>();
    super({
      isDeleted: (id) => failed.has(id),
      ...{ clock, watch, closed, idOf, metadataOf, hasEnded, createMs: CREATE_MS, what: "instance" },
      idIn: (externalId) => idIn(externalId, zone),
      isProven: ({ name }, tag) => name === machineName(tag),
      read: async (id, signal) =>
        id.includes("/")
          ? google.maybe<Instance>({ method: "GET", path: pathOf(id) }, signal)
          : [...(await this.watch.whole(signal)).values()].find(({ name }) => name === id),
      isUp: ({ status }) => status === "RUNNING",
      hasFailed: hasEnded,
      failure: ({ name, status }, place) =>
        new DriverError("transient", `${place}: instance ${name} went to ${status} while it was being made`),
      isLeaving: ({ status }) => /^(STOPPING|PENDING_STOP|DEPROVISIONING)$/.test(status),
      delete: async (id, signal) => {
        const query = { requestId: random.uuid() };
        await google.maybe({ method: "DELETE", path: pathOf(id), query }, signal);
      },
    });
    this.#google = google;
    this.#failed = failed;
    this.#random = random;
  }

  /**
   * The call that makes a machine, and resolves to its id. Its name and the id of the request are fixed before the first try. A name that is in
   * use is the node's own machine, by an earlier call whose answer was lost.
   */
  insert(zone: string, body: { readonly name: string }): (signal: AbortSignal) => Promise<string> {
    const query = { requestId: this.#random.uuid() };
    const id = idOf({ zone, name: body.name });
    return async (signal) => {
      try {
        const call = { method: "POST", path: `/zones/${zone}/instances`, query, body } as const;
        const operation = await this.#google.compute<Operation>(call, signal);
        if (this.#operations.size >= MOST_OPERATIONS) this.#operations.clear();
        this.#operations.set(id, operation);
        this.#failed.delete(id);
      } catch (error) {
        if (!wasRefused(error, 409)) throw ofOrder(error);
      }
      return id;
    };
  }

  /**
   * Reads the operation to its end where no listing shows the machine: stock-outs and quotas arrive there, long after the call was answered.
   * A machine that comes up needs no read of its own.
   */
  override async up(id: string, place: string, signal: AbortSignal): Promise<Instance> {
    for (;;) {
      try {
        return await super.up(id, place, signal);
      } catch (error) {
        if (!(error instanceof DriverError) || error.kind !== "not-found") throw error;
        const operation = this.#operations.get(id);
        const [fault] = (operation && (await this.#google.ended(operation, signal)).error?.errors) ?? [];
        if (fault !== undefined) {
          this.#failed.add(id);
          throw operationError(fault, place);
        }
        // It was made, by this process or another one, and lists lag; or it was deleted.
        this.#operations.delete(id);
        if ((await this.cloud.read(id, signal)) === undefined) throw error;
      }
    }
  }
}
