import {
  type Cloud,
  type CloudPart,
  type DriverContext,
  DriverError,
  defined,
  type LabelConfig,
  type MachineTable,
  type OpenFile,
  orThrow,
  type Resources,
  SharedValues,
  tagOf,
} from "@nodeyard/driver";
import type { Google } from "./client/google.ts";
import type { GceLabelOwn, GceProviderConfig } from "./config.ts";
import { imagesOf } from "./images/store.ts";
import { type Instance, idOf, instancesOf, isIn, last, pathOf } from "./machines/instances.ts";
import { instanceWork } from "./machines/work.ts";
import {
  diskAmounts,
  labelAmounts,
  limitsOf,
  type MachineType,
  machineAmounts,
  type TypeOf,
} from "./quota.ts";
import { marksIn } from "./tags.ts";

/** Machine types and zones change rarely; quotas by request, but their usage elsewhere moves the project's limit. */
const LASTING = { freshMs: 3_600_000, staleMs: 86_400_000 };
const QUOTA = { freshMs: 30_000, staleMs: 30_000 };

/** A provider of a project and region. */
export function gceCloud(
  config: GceProviderConfig,
  { clock, random, installation }: DriverContext,
  google: Google,
  openFile: OpenFile,
): Cloud<Instance, string, MachineTable<Instance>> {
  const { region, zone, project } = config.own;
  const shared = new SharedValues(clock);
  const typeOf: TypeOf = (at, type, signal) => {
    const load = (until: AbortSignal) => readType(google, at, type, until);
    return shared.get(`machine type ${type} in ${at}`, { load, ...LASTING }, signal);
  };
  const zonesOf = (signal: AbortSignal) => {
    const load = async (until: AbortSignal) => {
      const all = await google.list<{ readonly name: string; readonly status?: string }>("/zones", until);
      return all.flatMap(({ name, status }) => (isIn(region, name) && status === "UP" ? [name] : [])).sort();
    };
    return shared.get("list of zones", { load, ...LASTING }, signal);
  };
  const quota = (signal: AbortSignal) =>
    shared.get("quotas", { load: (until) => limitsOf(google, region, until), ...QUOTA }, signal);
  const owner = { installation, provider: config.name };
  const images = imagesOf({ google, clock, openFile, own: config.own, owner });
  const instances = instancesOf(google, random, config.own);
  return {
    ...{ ...instanceWork(config, instances), suspends: instances.suspends },
    ...defined({ images: images.store }),
    ...{ quota, limiter: google.limiter },
    place: () => ({ project, region }),
    parts: { disk: disksOf(google, region), ...images.parts },
    amounts: (machine, signal) => amountsOf(machine, typeOf, signal),
    async need({ own }: LabelConfig<GceLabelOwn>, signal) {
      const [at = ""] = zone === null ? await zonesOf(signal) : [zone];
      return labelAmounts(own, await typeOf(at, own.instanceType, signal));
    },
    async console(id, signal) {
      const call = { method: "GET", path: `${pathOf(id)}/serialPort` } as const;
      return (await google.maybe<{ readonly contents?: string }>(call, signal))?.contents ?? null;
    },
    zones: async ({ availabilityZones: own }, signal) => (own.length > 0 ? own : zonesOf(signal)),
    // Credential, project and region.
    check: async (signal) => void (await quota(signal)),
    close: () => shared.close(),
  };
}

/** A disk, as far as the driver reads it. */
interface Disk {
  readonly name: string;
  readonly zone?: string;
  readonly sizeGb?: string;
  readonly type?: string;
  readonly description?: string;
  /** Machines that have it. */
  readonly users?: readonly string[];
}

/** Disks, which go with their machine unless somebody changed that. One that names a user is not deleted, whether it is listed or not. */
function disksOf(google: Google, region: string): CloudPart {
  return {
    async list(signal) {
      const all = await google.list<Disk>("/aggregated/disks", signal, { key: "disks" });
      return all.flatMap(({ name, zone = "", users = [], type = "", sizeGb, description }) => {
        if (!isIn(region, zone)) return [];
        return {
          id: `${last(zone)}/${name}`,
          on: users.map((user) => idOf({ zone, name: last(user) })),
          tag: users.length === 0 ? tagOf(marksIn(description)) : null,
          resources: diskAmounts(last(type), Number(sizeGb ?? 0)),
        };
      });
    },
    delete: (id, signal) =>
      google.maybe({ method: "DELETE", path: pathOf(id).replace("/instances/", "/disks/") }, signal),
  };
}

/** The use of a machine. One whose type cannot be read, such as of others, counts as a machine only. */
async function amountsOf(
  { zone, machineType, networkInterfaces, scheduling }: Instance,
  typeOf: TypeOf,
  signal: AbortSignal,
): Promise<Resources> {
  const type = last(machineType);
  const size = await typeOf(last(zone), type, signal).catch(() => undefined);
  if (size === undefined) return { instances: 1 };
  const isPublic = networkInterfaces?.[0]?.accessConfigs?.[0] !== undefined;
  return machineAmounts(type, size, scheduling?.provisioningModel === "SPOT", isPublic);
}

/** A type that a zone does not have is an error of the label. One without its sizes is read again by the next who asks. */
async function readType(
  google: Google,
  zone: string,
  type: string,
  signal: AbortSignal,
): Promise<MachineType> {
  const path = `/zones/${zone}/machineTypes/${type}`;
  const found = await google.maybe<Partial<MachineType>>({ method: "GET", path }, signal);
  const why = `there is no machine type ${type} in ${zone}; correct instance-type`;
  const { guestCpus, memoryMb } = orThrow(found, why);
  if (guestCpus === undefined || memoryMb === undefined)
    throw new DriverError("transient", `machine type ${type} of ${zone} came without its size`);
  return { guestCpus, memoryMb };
}
