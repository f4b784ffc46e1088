import {
  CALL_MS,
  type Clock,
  type CloudPart,
  type CreateOrder,
  DriverError,
  SharedValue,
  type Steps,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { IbmPoolOwn, IbmProviderConfig } from "./config.ts";
import { hasCode, IN_USE, ofOrder, unlessMissing } from "./errors.ts";
import type { Ibm } from "./ibm.ts";
import type { Lookups } from "./lookups.ts";
import type { Named, Names } from "./names.ts";

/** A floating IP, as far as the driver reads it. */
interface FloatingIp extends Named {
  readonly address: string;
  readonly status: string;
  readonly zone: { readonly name: string };
  /** What it is attached to: for a network interface the address has the machine. */
  readonly target?: { readonly id?: string; readonly href?: string };
}

/** What of a machine an address is attached to. */
interface Holder {
  readonly id: string;
  readonly zone: { readonly name: string };
  readonly primary_network_interface?: { readonly id: string };
}

/** Age of a list, milliseconds: many launches at once share one. */
const LISTED_MS = 2_000;
/** An address that no node had for so long is deleted, milliseconds. */
const IDLE_MS = 7 * 86_400_000;

/**
 * Floating IPs of nodes. IBM takes the price of a month for each, however long it is there, so that those of nodes that are gone wait for further ones; their
 * names say so, and since when.
 *
 * Nothing at IBM is taken by one caller alone: of two launchers that rename a free address at once, the later one has it. Therefore an address is taken
 * before its machine is made, and attached after that is up, when its name still says so and nothing has it. The loser makes another one.
 */
export class Addresses {
  readonly #ibm: Ibm;
  readonly #clock: Clock;
  readonly #names: Names;
  readonly #lookups: Lookups;
  readonly #isUsed: boolean;
  readonly #listed: SharedValue<readonly FloatingIp[]>;
  /** Free names that this process has taken already: a list may still show them. */
  readonly #taken = new Set<string>();

  constructor(parts: {
    readonly ibm: Ibm;
    readonly clock: Clock;
    readonly names: Names;
    readonly lookups: Lookups;
    readonly config: IbmProviderConfig;
  }) {
    const { ibm, clock, names, lookups, config } = parts;
    this.#ibm = ibm;
    this.#clock = clock;
    this.#names = names;
    this.#lookups = lookups;
    this.#isUsed = config.pools.some(({ own }) => own.publicIpv4);
    this.#listed = new SharedValue({
      ...{ clock, what: "list of floating IPs", freshMs: LISTED_MS, staleMs: LISTED_MS },
      load: (signal) => ibm.list<FloatingIp>("/floating_ips", signal),
    });
  }

  /** Steps that take a free address for a node that has none, or make one. `isMade`: so is its machine, and `attached` does that. */
  async *claimed(order: CreateOrder, isMade: boolean, signal: AbortSignal): Steps<undefined> {
    if (isMade || !isPublic(order)) return undefined;
    yield { step: "address", deadlineMs: CALL_MS };
    const { zone } = await this.#lookups.place(order, signal);
    const all = await this.#listed.get(signal);
    if ((await this.#usable(all, order, zone, undefined, signal)) !== undefined) return undefined;
    for (const name of this.#taken) if (!all.some((one) => one.name === name)) this.#taken.delete(name);
    const free = all.find(
      (one) =>
        one.zone.name === zone &&
        one.status === "available" &&
        one.target === undefined &&
        this.#names.freeIn(one.name) !== undefined &&
        !this.#taken.has(one.name),
    );
    if (free === undefined) await this.#make(order, zone, signal);
    else {
      this.#taken.add(free.name);
      await this.#rename(free, this.#names.of(order.tag), signal);
    }
    return undefined;
  }

  /** Steps that attach the node's address to its machine; null: it has none. */
  async *attached(order: CreateOrder, machine: Holder, signal: AbortSignal): Steps<string | null> {
    const nic = machine.primary_network_interface?.id;
    if (!isPublic(order) || nic === undefined) return null;
    yield { step: "attach", deadlineMs: CALL_MS };
    const { name: zone } = machine.zone;
    // A list that is older than the claim does not show it.
    if (this.#own(await this.#listed.get(signal), order.tag) === undefined) this.#listed.invalidate();
    const own =
      (await this.#usable(await this.#listed.get(signal), order, zone, nic, signal)) ??
      (await this.#make(order, zone, signal));
    if (own === undefined)
      throw new DriverError("transient", "the address of the node is there, and no list shows it yet");
    if (own.target !== undefined) return own.address;
    const path = `/instances/${machine.id}/network_interfaces/${nic}/floating_ips/${own.id}`;
    return (await this.#ibm.call<FloatingIp>("PUT", path, signal)).address;
  }

  /** Steps that let further nodes have a node's address. Its machine is deleted next, which detaches it. */
  async *freed(tag: Tag, signal: AbortSignal): Steps<void> {
    if (!this.#isUsed) return;
    const own = this.#own(await this.#listed.get(signal), tag);
    if (own === undefined) return;
    yield { step: "address", deadlineMs: CALL_MS };
    await this.#free(own, tag.nodeId, signal);
  }

  /** Addresses of nodes that are gone become free; free ones of which nobody had use for a week are deleted. */
  get part(): CloudPart {
    return {
      list: async (signal) => {
        const all = await this.#ibm.list<FloatingIp>("/floating_ips", signal);
        // Those that wait for further nodes are nobody's, and nothing of the quota.
        return all
          .filter((one) => this.#names.freeIn(one.name) === undefined || this.#tagOf(one) !== null)
          .map((one) => ({
            id: one.id,
            on: [/\/instances\/([^/]+)\//.exec(one.target?.href ?? "")?.[1]],
            tag: one.target === undefined ? this.#tagOf(one) : null,
          }));
      },
      delete: async (id, signal) => {
        const one = await this.#ibm.read<FloatingIp>("floating_ip", pathOf(id), signal);
        const tag = one === undefined || one.target !== undefined ? null : this.#tagOf(one);
        if (one === undefined || tag === null) return;
        if (this.#names.freeIn(one.name) === undefined) await this.#free(one, tag.nodeId, signal);
        else await this.#ibm.delete("floating_ip", pathOf(id), signal);
      },
    };
  }

  close(): void {
    this.#listed.close();
  }

  #tagOf(one: FloatingIp): Tag | null {
    const free = this.#names.freeIn(one.name);
    if (free === undefined) return tagOf(this.#names.metadataOf(one));
    return this.#clock.now() - free.since > IDLE_MS ? this.#names.tag(free.nodeId, one) : null;
  }

  #own(all: readonly FloatingIp[], tag: Tag): FloatingIp | undefined {
    return all.find((one) => this.#names.isOf(one, tag));
  }

  /** The node's address, if it can be attached to a machine in the zone. One that cannot goes back to the free ones. */
  async #usable(
    all: readonly FloatingIp[],
    { tag }: CreateOrder,
    zone: string,
    nic: string | undefined,
    signal: AbortSignal,
  ): Promise<FloatingIp | undefined> {
    const own = this.#own(all, tag);
    if (own === undefined) return undefined;
    if (own.zone.name === zone && (own.target === undefined || own.target.id === nic)) return own;
    await this.#free(own, tag.nodeId, signal);
    return undefined;
  }

  async #make(order: CreateOrder, zone: string, signal: AbortSignal): Promise<FloatingIp | undefined> {
    const group = await this.#lookups.group(this.#names.group(order.pool.name), true, signal);
    const body = { name: this.#names.of(order.tag), resource_group: { id: group }, zone: { name: zone } };
    try {
      return await this.#ibm.call<FloatingIp>("POST", "/floating_ips", signal, { body });
    } catch (error) {
      if (!hasCode(error, IN_USE)) throw ofOrder(error);
      // By an earlier try whose answer was lost.
      this.#listed.invalidate();
      return this.#own(await this.#listed.get(signal), order.tag);
    }
  }

  async #free(one: FloatingIp, nodeId: string, signal: AbortSignal): Promise<void> {
    await this.#rename(one, this.#names.free(nodeId, this.#clock.now()), signal);
  }

  async #rename({ id }: FloatingIp, name: string, signal: AbortSignal): Promise<void> {
    const call = this.#ibm.call("PATCH", pathOf(id), signal, { body: { name } });
    // One that somebody deleted is neither taken nor free.
    await unlessMissing(call, "floating_ip");
    this.#listed.invalidate();
  }
}

const pathOf = (id: string) => `/floating_ips/${encodeURIComponent(id)}`;
const isPublic = ({ pool }: CreateOrder) => (pool.own as IbmPoolOwn).publicIpv4;
