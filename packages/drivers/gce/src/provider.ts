import {
  type Cloud,
  type CloudPart,
  type DriverContext,
  DriverError,
  type LabelConfig,
  marketType,
  type OpenFile,
  type OwnList,
  type Resources,
  SharedValue,
  SharedValues,
} from "@nodeyard/driver";
import type { Google } from "./client/google.ts";
import type { GceLabelOwn, GceProviderConfig } from "./config.ts";
import { imagesOf } from "./images/store.ts";
import { type Instance, Instances, idOf, last, pathOf } from "./machines/instances.ts";
import { instanceWork } from "./machines/work.ts";
import {
  diskAmounts,
  labelAmounts,
  limitsOf,
  type MachineType,
  machineAmounts,
  type TypeOf,
} from "./quota.ts";
import { tagOfDisk } from "./tags.ts";

/** Machine types and zones change rarely; quotas by request, but their usage elsewhere moves the project's limit. */
const LASTING = { freshMs: 3_600_000, staleMs: 86_400_000 };
const QUOTA = { freshMs: 30_000, staleMs: 30_000 };

/** A provider of a project and region. */
export function gceCloud(
  config: GceProviderConfig,
  { clock, log, random }: DriverContext,
  { google, openFile, closed }: { google: Google; openFile: OpenFile; closed: AbortSignal },
): Cloud<Instance, string> {
  const { region, zone, project } = config.own;
  const watch: OwnList<Instance> = {
    ...{ log, provider: config.name },
    list: async (signal) => {
      const all = await google.list<Instance>("/aggregated/instances", signal, { key: "instances" });
      return all.filter((one) => isIn(region, one.zone));
    },
  };
  const instances = new Instances({ google, clock, random, watch, zone, closed });
  const types = new SharedValues<MachineType>(clock);
  const typeOf: TypeOf = (at, type, signal) =>
    types.get(
      `machine type ${type} in ${at}`,
      { load: (until) => readType(google, at, type, until), ...LASTING },
      signal,
    );
  const zones = new SharedValue<readonly string[]>({
    ...{ clock, what: "list of zones", ...LASTING },
    load: async (signal) => {
      const all = await google.list<{ readonly name: string; readonly status?: string }>("/zones", signal);
      return all.flatMap(({ name, status }) => (isIn(region, name) && status === "UP" ? [name] : [])).sort();
    },
  });
  const quota = new SharedValue<Resources>({
    ...{ clock, what: "quotas", ...QUOTA, load: (signal) => limitsOf(google, region, signal) },
  });
  const images = imagesOf({ google, clock, openFile, own: config.own });
  return {
    ...instanceWork(config, instances, typeOf),
    place: () => ({ project, region }),
    parts: { disk: disksOf(google, region), ...images.parts },
    amounts: (listed, signal) => amountsOf(listed, typeOf, signal),
    quota: (signal) => quota.get(signal),
    async need(label: LabelConfig<GceLabelOwn>, signal) {
      const [at = ""] = zone === null ? await zones.get(signal) : [zone];
      return labelAmounts(label.own, await typeOf(at, label.own.instanceType, signal));
    },
    console: async (id, signal) => {
      const call = { method: "GET", path: `${pathOf(id)}/serialPort` } as const;
      const shown = await google.maybe<{ readonly contents?: string }>(call, signal);
      return shown?.contents ?? null;
    },
    offers: {
      types: { of: ({ own }: LabelConfig<GceLabelOwn>) => marketType(own.instanceType, own.spot) },
      pace: { now: () => google.limiter },
      ...(images.store && { images: images.store }),
      zones: {
        list: async ({ availabilityZones: own }, signal) => (own.length > 0 ? own : zones.get(signal)),
      },
    },
    // Credential, project and region.
    check: async (signal) => void (await quota.get(signal)),
    close() {
      for (const one of [types, zones, quota]) one.close();
    },
  };
}

/** Whether a zone, by name or address, is in the region. */
function isIn(region: string, zone: string): boolean {
  return last(zone).startsWith(`${region}-`);
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
      return all.flatMap((disk) => {
        const { name, zone = "", users = [], type = "", sizeGb } = disk;
        if (!isIn(region, zone)) return [];
        return {
          id: `${last(zone)}/${name}`,
          on: users.map((user) => idOf({ zone, name: last(user) })),
          tag: users.length === 0 ? tagOfDisk(disk) : null,
          resources: diskAmounts(last(type), Number(sizeGb ?? 0)),
        };
      });
    },
    async delete(id, signal) {
      await google.maybe({ method: "DELETE", path: pathOf(id).replace("/instances/", "/disks/") }, signal);
    },
  };
}

/** The use of each machine. One whose type cannot be read, such as of others, counts as a machine only. */
async function amountsOf(listed: readonly Instance[], typeOf: TypeOf, signal: AbortSignal) {
  const amounts = await Promise.all(
    listed.map(async ({ zone, machineType, networkInterfaces, scheduling }) => {
      const type = last(machineType);
      const size = await typeOf(last(zone), type, signal).catch(() => undefined);
      if (size === undefined) return { instances: 1 };
      const isPublic = networkInterfaces?.[0]?.accessConfigs?.[0] !== undefined;
      return machineAmounts(type, size, scheduling?.provisioningModel === "SPOT", isPublic);
    }),
  );
  const by = new Map(listed.map((machine, index) => [machine, amounts[index]!]));
  return (machine: Instance): Resources => by.get(machine)!;
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
  if (found === undefined)
    throw new DriverError(
      "configuration",
      `there is no machine type ${type} in ${zone}; correct instance-type`,
    );
  const { guestCpus, memoryMb } = found;
  if (guestCpus === undefined || memoryMb === undefined)
    throw new DriverError("transient", `machine type ${type} of ${zone} came without its size`);
  return { guestCpus, memoryMb };
}
