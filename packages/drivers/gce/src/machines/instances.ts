import {
  DriverError,
  type ExternalId,
  type MachineTable,
  type MakeCall,
  type Metadata,
  machineName,
  type Random,
  type Rest,
  type Suspends,
  wasRefused,
} from "@nodeyard/driver";
import type { Google, Operation } from "../client/google.ts";
import type { GceProviderOwn } from "../config.ts";
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

/** Operations of inserts that are remembered. */
const MOST_OPERATIONS = 10_000;
const RESTS: Readonly<Record<string, Rest>> = { SUSPENDING: "suspending", SUSPENDED: "suspended" };
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
function idIn(externalId: ExternalId | null, zone: string | null): string | undefined {
  if (typeof externalId !== "string") return undefined;
  const id = externalId.includes("/") || zone === null ? externalId : `${zone}/${externalId}`;
  return /^(([a-z0-9-]+\/)?[a-z0-9-]+|(projects|nodeyard)\/[\w./:%!~*'()-]+)$/.test(id) ? id : undefined;
}

/** Whether a zone, by name or address, is in the region. */
export function isIn(region: string, zone: string): boolean {
  return last(zone).startsWith(`${region}-`);
}

const hasEnded = ({ status }: Instance) => ENDED.test(status);

function metadataOf({ metadata }: Instance): Metadata {
  return Object.fromEntries((metadata?.items ?? []).map(({ key, value = "" }) => [key, value]));
}

/** Path of a machine for a call. */
export function pathOf(id: string): string {
  const [zone, name] = id.split("/");
  return `/zones/${zone}/instances/${name}`;
}

/** Instances of a region, and how they are made. */
export interface Instances {
  readonly machines: MachineTable<Instance>;
  /** Google keeps the RAM for sixty days, and stops the machine then. An ephemeral address is another one afterwards. */
  readonly suspends: Suspends<Instance>;
  /**
   * The call that makes a machine. Its name and the id of the request are fixed before the first try. A name that is in use is the node's own
   * machine, by an earlier call whose answer was lost.
   */
  insert(zone: string, body: { readonly name: string }): MakeCall;
}

/** The machines of nodes in every zone of a region, and the operations that make them. `zone`: the provider's, in which Nodepool's machines are. */
export function instancesOf(
  google: Google,
  random: Random,
  { region, zone }: Pick<GceProviderOwn, "region" | "zone">,
): Instances {
  const operations = new Map<string, Operation>();
  /** Ids of which the operation said that there is no machine: they need no read. */
  const failed = new Set<string>();
  const list = async (signal: AbortSignal) => {
    const all = await google.list<Instance>("/aggregated/instances", signal, { key: "instances" });
    return all.filter((one) => isIn(region, one.zone));
  };
  const read = async (id: string, signal: AbortSignal) =>
    id.includes("/")
      ? google.maybe<Instance>({ method: "GET", path: pathOf(id) }, signal)
      : (await list(signal)).find(({ name }) => name === id);
  const requestId = () => ({ requestId: random.uuid() });

  const machines: MachineTable<Instance> = {
    ...{ watch: { list }, read, idOf, metadataOf, hasEnded },
    isDeleted: (id) => failed.has(id),
    idIn: (externalId) => idIn(externalId, zone),
    isProven: ({ name }, tag) => name === machineName(tag),
    isUp: ({ status }) => status === "RUNNING",
    failure: ({ name, status }, place) =>
      new DriverError("transient", `${place}: instance ${name} went to ${status} while it was being made`),
    isLeaving: ({ status }) => /^(STOPPING|PENDING_STOP|DEPROVISIONING)$/.test(status),
    delete: (id, signal) => google.maybe({ method: "DELETE", path: pathOf(id), query: requestId() }, signal),
    // Stock-outs and quotas arrive in the operation, long after the call was answered. A machine that comes up needs no read of it.
    async isUnlisted(id, place, signal) {
      const operation = operations.get(id);
      const [fault] = (operation && (await google.ended(operation, signal)).error?.errors) ?? [];
      if (fault !== undefined) {
        failed.add(id);
        throw operationError(fault, place);
      }
      // It was made, by this process or another one, and lists lag; or it was deleted.
      operations.delete(id);
      return (await read(id, signal)) !== undefined;
    },
  };
  /** What Google refuses, and what it has no room for, arrives in the operation. */
  const change = async (id: string, what: "suspend" | "resume", signal: AbortSignal) => {
    const call = { method: "POST", path: `${pathOf(id)}/${what}`, query: requestId() } as const;
    const { error } = await google.ended(await google.compute<Operation>(call, signal), signal);
    for (const fault of error?.errors ?? []) throw operationError(fault, `${what} of instance ${id}`);
  };
  return {
    machines,
    suspends: {
      suspend: (id, signal) => change(id, "suspend", signal),
      resume: (id, signal) => change(id, "resume", signal),
      restOf: ({ status }) => RESTS[status],
    },
    insert(zone, body) {
      const query = requestId();
      const id = idOf({ zone, name: body.name });
      return async (signal) => {
        try {
          const call = { method: "POST", path: `/zones/${zone}/instances`, query, body } as const;
          const operation = await google.compute<Operation>(call, signal);
          if (operations.size >= MOST_OPERATIONS) operations.clear();
          operations.set(id, operation);
          failed.delete(id);
        } catch (error) {
          if (!wasRefused(error, 409)) throw ofOrder(error);
        }
        return id;
      };
    },
  };
}
