import {
  type Clock,
  type CreateOrder,
  DriverError,
  SharedValue,
  SharedValues,
  wasRefused,
} from "@nodeyard/driver";
import type { IbmLabelOwn, IbmPoolOwn, IbmProviderConfig, ImageSource } from "./config.ts";
import { hasCode, IN_USE } from "./errors.ts";
import type { Ibm } from "./ibm.ts";

/** Profiles hardly change, networks and keys now and then, images by filter with each release. */
const LASTING = { freshMs: 3_600_000, staleMs: 86_400_000 };
const SLOW = { freshMs: 600_000, staleMs: 600_000 };
const SOON = { freshMs: 300_000, staleMs: 300_000 };

/** What of several things is read. */
interface Thing {
  readonly id: string;
  readonly name: string;
}
interface Subnet extends Thing {
  readonly vpc: { readonly id: string };
  readonly zone: { readonly name: string };
}
/** An amount of a profile: fixed, or one of several with a default. */
interface Amount {
  readonly value?: number;
  readonly default?: number;
}
/** An image, as far as the driver reads it. */
export interface Image extends Thing {
  readonly status?: string;
  readonly status_reasons?: readonly { readonly code?: string; readonly message?: string }[];
  readonly visibility?: string;
  readonly created_at?: string;
  readonly operating_system?: Readonly<Record<string, unknown>>;
  readonly resource_group?: { readonly name?: string };
}
/** Where the machines of a pool may be: one subnet for each zone. */
interface Network {
  readonly vpc: string;
  readonly byZone: ReadonlyMap<string, string>;
}

/** What names of the file stand for in the region. Errors of names are `configuration`. */
export class Lookups {
  readonly #ibm: Ibm;
  readonly #config: IbmProviderConfig;
  readonly #shared: SharedValues<unknown>;
  readonly #networks: SharedValue<{ readonly vpc: string; readonly subnets: readonly Subnet[] }>;

  constructor(ibm: Ibm, clock: Clock, config: IbmProviderConfig) {
    this.#ibm = ibm;
    this.#config = config;
    this.#shared = new SharedValues(clock);
    this.#networks = new SharedValue({
      ...{ clock, what: "list of subnets", ...SLOW },
      load: async (signal) => {
        const [vpcs, subnets] = await Promise.all([
          ibm.list<Thing>("/vpcs", signal),
          ibm.list<Subnet>("/subnets", signal),
        ]);
        const vpc = idOf(vpcs, config.own.vpc, `VPC in ${config.own.region}; correct vpc`);
        return { vpc, subnets: subnets.filter((one) => one.vpc.id === vpc) };
      },
    });
  }

  /** Rejects when a subnet is not in the VPC, or in another zone than the pool's. */
  async network({ zone, subnets }: IbmPoolOwn, signal: AbortSignal): Promise<Network> {
    const { vpc, subnets: all } = await this.#networks.get(signal);
    const byZone = subnets.map((name) => {
      const { id, zone: of } = find(all, name, `subnet in VPC ${this.#config.own.vpc}; correct subnet`);
      if (zone === null || of.name === zone) return [of.name, id] as const;
      throw new DriverError(
        "configuration",
        `subnet ${name} is in ${of.name}, and not in zone ${zone} of the pool`,
      );
    });
    return { vpc, byZone: new Map(byZone) };
  }

  /** Where a node's machine is made. */
  async place({ pool, az }: Pick<CreateOrder, "pool" | "az">, signal: AbortSignal) {
    const { vpc, byZone } = await this.network(pool.own as IbmPoolOwn, signal);
    const [first] = [...byZone.keys()].sort();
    const zone = az ?? first!;
    const subnet = byZone.get(zone);
    if (subnet !== undefined) return { vpc, zone, subnet };
    throw new DriverError("unsupported", `pool ${pool.name} has no subnet in zone ${zone}`);
  }

  /** Ids of SSH keys by their names. */
  async keys(names: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    if (names.length === 0) return [];
    const all = await this.#get(
      "list of SSH keys",
      SLOW,
      (until) => this.#ibm.list<Thing>("/keys", until),
      signal,
    );
    return names.map((name) => idOf(all, name, "SSH key in the region; correct keys"));
  }

  /** A resource group's id. `make`: one that is not there is made. Undefined: it is not there. */
  async group(name: string, make: boolean, signal: AbortSignal): Promise<string | undefined> {
    const load = async (until: AbortSignal) => {
      const read = async () => {
        type Page = { readonly resources: readonly Thing[] };
        const { resources } = await this.#ibm.groups<Page>("GET", until, { query: { name } });
        return resources.find((one) => one.name === name)?.id;
      };
      const found = await read();
      if (found !== undefined || !make) return found;
      try {
        return (await this.#ibm.groups<Thing>("POST", until, { body: { name } })).id;
      } catch (error) {
        // Another launcher made it, or the answer of an earlier try was lost.
        if (!wasRefused(error, 409) && !hasCode(error, IN_USE)) throw error;
        return read();
      }
    };
    return this.#get(`resource group ${name}${make ? "" : ", if there"}`, make ? SLOW : SOON, load, signal);
  }

  /** Cores, and memory in MiB, of a profile. */
  async sizeOf({ profile }: Pick<IbmLabelOwn, "profile">, signal: AbortSignal) {
    const load = async (until: AbortSignal) => {
      type Profile = { readonly vcpu_count?: Amount; readonly memory?: Amount };
      const path = `/instance/profiles/${encodeURIComponent(profile)}`;
      const found = await this.#ibm.read<Profile>("instance_profile", path, until);
      if (found === undefined)
        throw new DriverError(
          "configuration",
          `there is no profile ${profile} in ${this.#config.own.region}; correct profile`,
        );
      const of = (amount: Amount | undefined) => amount?.value ?? amount?.default;
      const [cores, gib] = [of(found.vcpu_count), of(found.memory)];
      if (cores === undefined || gib === undefined)
        throw new DriverError("transient", `profile ${profile} came without its size`);
      return { cores, ram: gib * 1_024 };
    };
    return this.#get(`profile ${profile}`, LASTING, load, signal);
  }

  /** How a call names the image of a label. */
  async image(
    source: ImageSource,
    signal: AbortSignal,
  ): Promise<{ readonly id: string } | { readonly href: string }> {
    if ("id" in source || "href" in source) return source;
    const what = `image ${JSON.stringify(source)}`;
    const query = "name" in source ? { name: source.name } : undefined;
    const load = async (until: AbortSignal) => {
      const all = await this.#ibm.list<Image>("/images", until, query);
      const fits = ({ name, status }: Image) =>
        "name" in source && name === source.name && status !== "failed";
      const made = ({ created_at }: Image) => Date.parse(created_at ?? "") || 0;
      const [newest] = all
        .filter((one) => ("filter" in source ? isLike(one, source.filter) : fits(one)))
        .sort((a, b) => made(b) - made(a));
      if (newest === undefined)
        throw new DriverError("configuration", `there is no ${what}; correct the cloud-image`);
      return { id: newest.id };
    };
    return this.#get(what, SOON, load, signal);
  }

  close(): void {
    this.#shared.close();
    this.#networks.close();
  }

  #get<T>(
    what: string,
    how: typeof SLOW,
    load: (signal: AbortSignal) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    return this.#shared.get(what, { load, ...how }, signal) as Promise<T>;
  }
}

function find<T extends Thing>(all: readonly T[], name: string, what: string): T {
  const found = all.find((one) => one.name === name);
  if (found !== undefined) return found;
  throw new DriverError("configuration", `there is no ${name} among the names of each ${what}`);
}

function idOf(all: readonly Thing[], name: string, what: string): string {
  return find(all, name, what).id;
}

/** Older versions of the API named the owner. */
function ownerOf({ visibility }: Image): string {
  return visibility === "private" ? "user" : "provider";
}

/** Whether an image has everything that a filter names. */
function isLike(
  image: Image,
  { operatingSystem, ownerType, status }: Extract<ImageSource, { filter: unknown }>["filter"],
): boolean {
  const wanted = Object.entries(operatingSystem).filter(([, value]) => value !== null);
  return (
    (ownerType === null || ownerOf(image) === ownerType) &&
    (status === null ? image.status === "available" : image.status === status) &&
    wanted.every(
      ([key, value]) =>
        image.operating_system?.[key.replace(/[A-Z]/g, (upper) => `_${upper.toLowerCase()}`)] === value,
    )
  );
}
