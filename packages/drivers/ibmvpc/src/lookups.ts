import { type Clock, DriverError, SharedValues, wasRefused } from "@nodeyard/driver";
import type { IbmLabelOwn, IbmOrder, IbmPoolOwn, IbmProviderConfig, ImageSource } from "./config.ts";
import { IN_USE, type Reason } from "./errors.ts";
import type { Ibm } from "./ibm.ts";
import type { Named, Names } from "./names.ts";

/** Profiles hardly change, networks and keys now and then, images by filter with each release. */
const LASTING = { freshMs: 3_600_000, staleMs: 86_400_000 };
const SLOW = { freshMs: 600_000 };
const SOON = { freshMs: 300_000 };

interface Subnet extends Named {
  readonly vpc: { readonly id: string };
  readonly zone: { readonly name: string };
}
/** An amount of a profile: fixed, or one of several with a default. */
interface Amount {
  readonly value?: number;
  readonly default?: number;
}
/** An image, as far as the driver reads it. */
export interface Image extends Named {
  readonly status?: string;
  readonly status_reasons?: readonly Reason[];
  readonly visibility?: string;
  readonly created_at?: string;
  readonly operating_system?: Readonly<Record<string, unknown>>;
}

/** What the parts of a provider share. */
export interface Site {
  readonly config: IbmProviderConfig;
  readonly ibm: Ibm;
  readonly clock: Clock;
  readonly names: Names;
  readonly lookups: Lookups;
}

export type Lookups = ReturnType<typeof lookupsOf>;

/** What names of the file stand for in the region. */
export function lookupsOf({ ibm, clock, config }: Pick<Site, "ibm" | "clock" | "config">) {
  const shared = new SharedValues(clock);

  const allOf = <T>(key: string, signal: AbortSignal): Promise<readonly T[]> => {
    const load = (until: AbortSignal) => ibm.list<T>(key, until);
    return shared.get(`list of ${key}`, { load, ...SLOW }, signal);
  };

  /** The VPC, and the subnet of each zone in which machines of a pool may be. Rejects when a subnet is elsewhere than the file says. */
  async function network({ zone, subnets }: IbmPoolOwn, signal: AbortSignal) {
    const { vpc: name } = config.own;
    const [vpcs, all] = await Promise.all([allOf<Named>("vpcs", signal), allOf<Subnet>("subnets", signal)]);
    const { id: vpc } = find(vpcs, name, "there is no VPC");
    const own = all.filter((one) => one.vpc.id === vpc);
    const found = subnets.map((subnet) => find(own, subnet, `VPC ${name} has no subnet`));
    const stray = found.find((subnet) => zone !== null && subnet.zone.name !== zone);
    // Of the provider, and of no label: requests wait until it is corrected.
    if (stray !== undefined)
      throw new DriverError(
        "access",
        `subnet ${stray.name} is in ${stray.zone.name}, and not in zone ${zone} of the pool`,
      );
    return { vpc, byZone: new Map(found.map((subnet) => [subnet.zone.name, subnet.id])) };
  }

  return {
    network,

    /** Where a node's machine is made. */
    async place({ pool, az }: Pick<IbmOrder, "pool" | "az">, signal: AbortSignal) {
      const { vpc, byZone } = await network(pool.own, signal);
      const zone = az ?? [...byZone.keys()].sort()[0]!;
      const subnet = byZone.get(zone);
      if (subnet !== undefined) return { vpc, zone, subnet };
      throw new DriverError("unsupported", `pool ${pool.name} has no subnet in zone ${zone}`);
    },

    /** SSH keys by their names. */
    async keys(names: readonly string[], signal: AbortSignal): Promise<readonly { readonly id: string }[]> {
      const all = names.length === 0 ? [] : await allOf<Named>("keys", signal);
      return names.map((name) => ({ id: find(all, name, "there is no SSH key", "configuration").id }));
    },

    /** A resource group, which is made if it is not there. */
    group(name: string, signal: AbortSignal): Promise<{ readonly id: string }> {
      type Groups = { readonly resources: readonly Named[] };
      const path = "/v2/resource_groups";
      const of = "groups";
      const load = async (until: AbortSignal) => {
        const read = async () => {
          const page = await ibm.call<Groups>("GET", path, until, { of, query: { name } });
          return page.resources.find((one) => one.name === name);
        };
        const make = () => ibm.call<Named>("POST", path, until, { of, body: { name } });
        // Another launcher makes it at the same time, or the answer of an earlier try was lost.
        const unlessMade = async (error: unknown) => {
          const found = wasRefused(error, 409, IN_USE) ? await read() : undefined;
          if (found === undefined) throw error;
          return found;
        };
        const { id } = (await read()) ?? (await make().catch(unlessMade));
        return { id };
      };
      return shared.get(`resource group ${name}`, { load, ...SLOW }, signal);
    },

    /** Cores, and memory in MiB, of a profile. */
    sizeOf({ profile }: Pick<IbmLabelOwn, "profile">, signal: AbortSignal) {
      const of = (amount: Amount | undefined) => amount?.value ?? amount?.default ?? Number.NaN;
      const load = async (until: AbortSignal) => {
        type Profile = { readonly vcpu_count?: Amount; readonly memory?: Amount };
        const path = `/instance/profiles/${encodeURIComponent(profile)}`;
        const found = await ibm.read<Profile>("instance_profile", path, until);
        if (found === undefined)
          throw new DriverError("configuration", `there is no profile ${profile}; correct profile`);
        const size = { cores: of(found.vcpu_count), ram: of(found.memory) * 1_024 };
        if (size.cores > 0 && size.ram > 0) return size;
        throw new DriverError("transient", `profile ${profile} came without its size`);
      };
      return shared.get(`profile ${profile}`, { load, ...LASTING }, signal);
    },

    /** How a call names the image of a label: of several that fit the newest. */
    async image(source: ImageSource, signal: AbortSignal) {
      if ("id" in source || "href" in source) return source;
      const what = `image ${JSON.stringify(source)}`;
      const load = async (until: AbortSignal) => {
        const all = await ibm.list<Image>("images", until, "name" in source ? { name: source.name } : {});
        const fits = (one: Image) =>
          "name" in source ? one.name === source.name : isLike(one, source.filter);
        const made = ({ created_at = "" }: Image) => Date.parse(created_at) || 0;
        const [newest] = all.filter(fits).sort((a, b) => made(b) - made(a));
        if (newest !== undefined) return { id: newest.id };
        throw new DriverError("configuration", `there is no ${what}; correct the cloud-image`);
      };
      return shared.get(what, { load, ...SOON }, signal);
    },

    close: () => shared.close(),
  };
}

function find<T extends Named>(
  all: readonly T[],
  name: string,
  what: string,
  kind: "access" | "configuration" = "access",
): T {
  const found = all.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw new DriverError(kind, `${what} ${name} in the region; correct the name`);
}

/** Whether an image has everything that a filter names. Newer versions of the API say of the owner only who may see the image. */
function isLike(
  image: Image,
  { operatingSystem, ownerType, status }: Extract<ImageSource, { filter: unknown }>["filter"],
) {
  const wanted = Object.entries(operatingSystem).filter(([, value]) => value !== null);
  const wire = (key: string) => key.replace(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`);
  return (
    (ownerType === null || (image.visibility === "private" ? "user" : "provider") === ownerType) &&
    image.status === (status ?? "available") &&
    wanted.every(([key, value]) => image.operating_system?.[wire(key)] === value)
  );
}
