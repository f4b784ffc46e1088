import { type Clock, ListWatch, type Log, messageOf, SharedValues, tagOf } from "@nodeyard/driver";
import { Arm, type ArmOptions } from "./arm.ts";
import { type AzureResource, keyOf } from "./resources.ts";
import { type Sizes, sizesOf } from "./sizes.ts";

/** Milliseconds after which a new machine must be listed. */
const LISTED_MS = 60_000;
/** Milliseconds until a new image of a filter is used at the latest. */
const IMAGES_MS = 300_000;

/** The addresses of a machine. */
export type Addresses = Readonly<
  Record<"publicIpv4" | "publicIpv6" | "privateIpv4" | "privateIpv6", string | null>
>;

/** A machine with its addresses, once it has all of them. */
export interface AddressedVm extends AzureResource {
  readonly addresses: Addresses | undefined;
}

/** What an account is opened with. */
export interface AccountOptions extends ArmOptions {
  readonly location: string;
  readonly group: string;
  readonly log: Log;
}

/** One credential in one location and resource group: the calls, lists and rate limit that its providers share. */
export class AzureAccount extends Arm {
  readonly clock: Clock;
  readonly sizes: Sizes;
  /** All machines of the resource group, also those of others. */
  readonly watch: ListWatch<AddressedVm>;
  /** Id of the subscription, as ids of resources begin. */
  readonly root: string;
  readonly #group: string;
  readonly #shared: SharedValues;
  /** Addresses of network interfaces by id. They do not change while the interface is there. */
  #known: ReadonlyMap<string, Addresses | undefined> = new Map();

  constructor(options: AccountOptions) {
    super(options);
    const { clock, log, identity, location, group } = options;
    this.clock = clock;
    this.root = `/subscriptions/${identity.subscription}`;
    this.#group = group;
    this.#shared = new SharedValues(clock);
    this.sizes = sizesOf(this, location, this.#shared);
    this.watch = new ListWatch<AddressedVm>({
      clock,
      what: `list of machines of ${group}`,
      settledMs: LISTED_MS,
      list: async (signal) => {
        const vms = await this.list<AzureResource>(this.path("virtualMachines"), signal);
        // A machine gets its addresses before it is up, so most are known from the look for another one's.
        if (
          vms.some((vm) => isUp(vm) && tagOf(vm.tags ?? {}) !== null && this.#addressesOf(vm) === undefined)
        )
          this.#known = await this.#addresses(signal);
        return vms.map((vm) => ({ ...vm, addresses: this.#addressesOf(vm) }));
      },
      idOf: ({ name }) => keyOf(name),
      isGone: () => false,
      onFailure: (error) =>
        log.warn({ group, error: messageOf(error) }, "cannot list the machines; will retry"),
    });
  }

  /** Path of a resource of the group, or of all of its type. */
  path(type: string, name = ""): string {
    const service = /^(networkInterfaces|publicIPAddresses)$/.test(type) ? "Network" : "Compute";
    const group = encodeURIComponent(this.#group);
    const one = name === "" ? "" : `/${encodeURIComponent(name)}`;
    return `/resourceGroups/${group}/providers/Microsoft.${service}/${type}${one}`;
  }

  /** The id of the image that fits a filter: of several the last by name. Undefined: there is none. */
  async imageOf(
    filter: { readonly name: string | null; readonly location: string | null; readonly tags: object },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const load = async (own: AbortSignal) => {
      const images = await this.list<AzureResource>(this.path("images"), own);
      const fits = ({ name, location, tags = {}, properties }: AzureResource) =>
        properties.provisioningState === "Succeeded" &&
        (filter.name === null || name === filter.name) &&
        (filter.location === null || keyOf(location) === keyOf(filter.location)) &&
        Object.entries(filter.tags).every(([key, value]) => tags[key] === value);
      const [last] = images.filter(fits).sort((a, b) => (a.name < b.name ? 1 : -1));
      return last?.id ?? "";
    };
    const how = { load, freshMs: IMAGES_MS };
    return (await this.#shared.get(`image of ${JSON.stringify(filter)}`, how, signal)) || undefined;
  }

  override async close(): Promise<void> {
    this.watch.close();
    this.#shared.close();
    await super.close();
  }

  #addressesOf({ properties }: AzureResource): Addresses | undefined {
    const [first] = properties.networkProfile?.networkInterfaces ?? [];
    return this.#known.get(keyOf(first?.id));
  }

  /** Public addresses are asked for only where an interface has one. */
  async #addresses(signal: AbortSignal): Promise<ReadonlyMap<string, Addresses | undefined>> {
    const nics = await this.list<AzureResource>(this.path("networkInterfaces"), signal);
    const configs = ({ properties }: AzureResource) =>
      properties.ipConfigurations?.flatMap(({ properties: one }) => one ?? []) ?? [];
    const hasPublic = nics.some((nic) => configs(nic).some((one) => one.publicIPAddress !== undefined));
    const ips = hasPublic ? await this.list<AzureResource>(this.path("publicIPAddresses"), signal) : [];
    const texts = new Map(ips.map(({ id, properties }) => [keyOf(id), properties.ipAddress]));
    return new Map(
      nics.map((nic) => {
        const found: Record<keyof Addresses, string | null> = {
          ...{ publicIpv4: null, publicIpv6: null, privateIpv4: null, privateIpv6: null },
        };
        for (const one of configs(nic)) {
          const version = one.privateIPAddressVersion === "IPv6" ? "Ipv6" : "Ipv4";
          const address = one.publicIPAddress && texts.get(keyOf(one.publicIPAddress.id));
          // One that is missing is still on its way.
          if (one.privateIPAddress === undefined) return [keyOf(nic.id), undefined];
          if (one.publicIPAddress !== undefined && address === undefined) return [keyOf(nic.id), undefined];
          found[`private${version}`] = one.privateIPAddress;
          found[`public${version}`] = address ?? null;
        }
        return [keyOf(nic.id), found];
      }),
    );
  }
}

/** Azure has made the machine and begun to boot it. */
export function isUp({ properties }: AzureResource): boolean {
  return properties.provisioningState === "Succeeded";
}
