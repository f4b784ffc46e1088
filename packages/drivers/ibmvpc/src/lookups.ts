import {
  type Clock,
  DriverError,
  type DriverErrorKind,
  noImage,
  orThrow,
  SharedValues,
  unlessRefused,
} from "@nodeyard/driver";
import type { IbmLabelOwn, IbmOrder, IbmPoolOwn, IbmProviderConfig, ImageSource } from "./config.ts";
import { IN_USE } from "./errors.ts";
import type { Ibm } from "./ibm.ts";
import type { Instance, Named, Names } from "./names.ts";

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
export interface Image extends Named, Pick<Instance, "status_reasons"> {
  readonly status?: string;
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
  /** Also for what others look up. */
  const known = new SharedValues(clock);

  const allOf = <T>(key: string, signal: AbortSignal): Promise<readonly T[]> => {
    const load = (until: AbortSignal) => ibm.list<T>(key, until);
    return known.get(`list of ${key}`, { load, ...SLOW }, signal);
  };

  /** The VPC, and the subnet of each zone in which machines of a pool may be. Rejects when a subnet is elsewhere than the file says. */
  async function network({ zone, subnets }: IbmPoolOwn, signal: AbortSignal) {
    const { vpc: name } = config.own;
    const [vpcs, all] = await Promise.all([allOf<Named>("vpcs", signal), allOf<Subnet>("subnets", signal)]);
    const { id: vpc } = find(vpcs, name, "there is no VPC", "access");
    const own = all.filter((one) => one.vpc.id === vpc);
    const found = subnets.map((subnet) => find(own, subnet, `VPC ${name} has no subnet`, "access"));
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
    ...{ known, network },

    /** Where a node's machine is made. */
    async place({ pool, az }: Pick<IbmOrder, "pool" | "az">, signal: AbortSignal) {
      const { vpc, byZone } = await network(pool.own, signal);
      const zone = az ?? [...byZone.keys()].sort()[0]!;
      const why = `pool ${pool.name} has no subnet in zone ${zone}`;
      return { vpc, zone, subnet: orThrow(byZone.get(zone), why, "unsupported") };
    },

    /** SSH keys by their names. */
    async keys(names: readonly string[], signal: AbortSignal) {
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
        const made = async () => (await unlessRefused(make(), 409, IN_USE)) ?? read();
        const why = `resource group ${name} is being made, and not listed yet`;
        return { id: orThrow((await read()) ?? (await made()), why, "transient").id };
      };
      return known.get(`resource group ${name}`, { load, ...SLOW }, signal);
    },

    /** What a machine of a profile uses. */
    need({ profile }: Pick<IbmLabelOwn, "profile">, signal: AbortSignal) {
      const of = (amount: Amount | undefined) => amount?.value ?? amount?.default ?? Number.NaN;
      const load = async (until: AbortSignal) => {
        type Profile = { readonly vcpu_count?: Amount; readonly memory?: Amount };
        const answer = await ibm.one<Profile>("GET", "instance/profiles", profile, until);
        const found = orThrow(answer, `there is no profile ${profile}; correct profile`);
        const size = { instances: 1, cores: of(found.vcpu_count), ram: of(found.memory) * 1_024 };
        if (size.cores > 0 && size.ram > 0) return size;
        throw new DriverError("transient", `profile ${profile} came without its size`);
      };
      return known.get(`profile ${profile}`, { load, ...LASTING }, signal);
    },

    /** How a call names the image to boot, an upload or that of the label: of several that fit the newest. */
    async image({ label, imageExternalId }: IbmOrder, signal: AbortSignal) {
      if (typeof imageExternalId === "string") return { id: imageExternalId };
      const { source } = label.own;
      if (source === null) throw noImage(label);
      const { imageId: id, imageHref: href, imageName: name, imageFilter: filter } = source;
      if (id !== null) return { id };
      if (href !== null) return { href };
      const what = `image ${name ?? JSON.stringify(filter)}`;
      const load = async (until: AbortSignal) => {
        const all = await ibm.list<Image>("images", until, name === null ? {} : { name });
        const fits = (one: Image) => (filter === null ? one.name === name : isLike(one, filter));
        const made = ({ created_at = "" }: Image) => Date.parse(created_at) || 0;
        const [newest] = all.filter(fits).sort((a, b) => made(b) - made(a));
        return { id: orThrow(newest, `there is no ${what}; correct the cloud-image`).id };
      };
      return known.get(what, { load, ...SOON }, signal);
    },
  };
}

function find<T extends Named>(all: readonly T[], name: string, what: string, kind: DriverErrorKind): T {
  const found = all.find((one) => one.name === name);
  return orThrow(found, `${what} ${name} in the region; correct the name`, kind);
}

/** Whether an image has everything that a filter names. Newer versions of the API say of the owner only who may see the image. */
function isLike(image: Image, filter: NonNullable<ImageSource["imageFilter"]>): boolean {
  const { operatingSystem, ownerType, status } = filter;
  const wanted = Object.entries(operatingSystem).filter(([, value]) => value !== null);
  const wire = (key: string) => key.replace(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`);
  return (
    (ownerType === null || (image.visibility === "private" ? "user" : "provider") === ownerType) &&
    image.status === (status ?? "available") &&
    wanted.every(([key, value]) => image.operating_system?.[wire(key)] === value)
  );
}
