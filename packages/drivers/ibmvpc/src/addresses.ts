import {
  CALL_MS,
  type Clock,
  type CloudPart,
  type CreateOrder,
  DriverError,
  machineName,
  SharedValue,
  type StepContext,
  type Steps,
  sameNode,
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
  /** What it is attached to; the address of a network interface has that of its machine. */
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

const pathOf = (id: string) => `/floating_ips/${encodeURIComponent(id)}`;
const isPublic = ({ pool }: CreateOrder) => (pool.own as IbmPoolOwn).publicIpv4;

/**
 * Floating IPs of nodes. IBM charges a month for each, however long it is kept, so the address of a node that is gone waits for a further
 * node; its name says that it is free, and since when.
 *
 * IBM has no way to take an address for one caller alone: of two launchers that rename a free one at the same time, the later one has it. So a
 * free address is renamed before its machine is made, and attached when the machine is up, if it still has that name and no target. The
 * launcher that lost it makes another one.
 */
export class Addresses {
  readonly #parts: { ibm: Ibm; clock: Clock; names: Names; lookups: Lookups; config: IbmProviderConfig };
  readonly #listed: SharedValue<readonly FloatingIp[]>;
  /** Free names that this process has taken already: a list may still show them. */
  #taken: ReadonlySet<string> = new Set();
  /** Addresses of this process's nodes by name, which a list may not show yet. */
  readonly #made = new Map<string, FloatingIp>();

  constructor(parts: { ibm: Ibm; clock: Clock; names: Names; lookups: Lookups; config: IbmProviderConfig }) {
    this.#parts = parts;
    this.#listed = new SharedValue({
      ...{ clock: parts.clock, what: "list of floating IPs", freshMs: LISTED_MS, staleMs: LISTED_MS },
      load: (signal) => parts.ibm.list<FloatingIp>("floating_ips", signal),
    });
  }

  /** Steps that take a free address for a node, if there is one. `isMade`: its machine is there already, which is too late for that. */
  async *claimed(order: CreateOrder, isMade: boolean, signal: AbortSignal): Steps<undefined> {
    if (isMade || !isPublic(order)) return undefined;
    yield { step: "address", deadlineMs: CALL_MS };
    const { zone } = await this.#parts.lookups.place(order, signal);
    const all = await this.#listed.get(signal);
    for (const { name } of all) this.#made.delete(name);
    if ((await this.#usable(all, order, zone, undefined, signal)) !== undefined) return undefined;
    const free = all.find(
      (one) =>
        one.zone.name === zone &&
        one.status === "available" &&
        one.target === undefined &&
        this.#idleMs(one) < IDLE_MS &&
        !this.#taken.has(one.name),
    );
    if (free === undefined) return undefined;
    this.#taken = new Set([...all.flatMap(({ name }) => (this.#taken.has(name) ? name : [])), free.name]);
    const name = machineName(order.tag);
    await this.#rename(free, name, signal);
    this.#made.set(name, { ...free, name });
    return undefined;
  }

  /**
   * Steps that attach the node's address to its machine, or make one; null: it has none. One that was made before would be paid for also
   * when IBM then has no room for the machine.
   */
  async *attached(order: CreateOrder, machine: Holder, signal: AbortSignal): Steps<string | null> {
    const nic = machine.primary_network_interface?.id;
    if (!isPublic(order) || nic === undefined) return null;
    yield { step: "attach", deadlineMs: CALL_MS };
    // A list that is older than the claim does not show it.
    if (this.#own(await this.#listed.get(signal), order.tag) === undefined) this.#listed.invalidate();
    const own =
      (await this.#usable(await this.#listed.get(signal), order, machine.zone.name, nic, signal)) ??
      (await this.#make(order, nic, signal));
    if (own === undefined)
      throw new DriverError("transient", "the node's address is there, and no list shows it yet");
    if (own.target !== undefined) return own.address;
    const path = `/instances/${machine.id}/network_interfaces/${nic}/floating_ips/${own.id}`;
    return (await this.#parts.ibm.call<FloatingIp>("PUT", path, signal)).address;
  }

  /** Steps that let further nodes have a node's address. Its machine is deleted next, which detaches it. */
  async *freed(tag: Tag, { externalId, signal }: StepContext): Steps<void> {
    if (!this.#parts.config.pools.some(({ own }) => own.publicIpv4)) return;
    const all = await this.#listed.get(signal);
    // A record of Nodepool's has the name of both.
    const older = all.find(({ name }) => name === externalId);
    const own = this.#own(all, tag) ?? this.#made.get(machineName(tag)) ?? older;
    if (own === undefined) return;
    yield { step: "address", deadlineMs: CALL_MS };
    await this.#free(own, tag, signal);
  }

  /**
   * Addresses of nodes that are gone become free. A free address belongs to no node and counts for no quota; each listing offers the one that
   * has been free for the longest time for deletion, and no more: a sweep that finds many leaks at once stops and doubts its lists.
   */
  get part(): CloudPart {
    const { ibm } = this.#parts;
    return {
      list: async (signal) => {
        const all = await ibm.list<FloatingIp>("floating_ips", signal);
        const longest = Math.max(IDLE_MS, ...all.map((one) => this.#idleMs(one)).filter(Number.isFinite));
        return all.flatMap((one) => {
          const on = [/\/instances\/([^/]+)\//.exec(one.target?.href ?? "")?.[1]];
          const isIdle = this.#idleMs(one) === longest && longest > IDLE_MS;
          if (this.#parts.names.freeIn(one) !== undefined && !isIdle) return [];
          return { id: one.id, on, tag: one.target === undefined ? this.#tagOf(one) : null };
        });
      },
      delete: async (id, signal) => {
        const one = await ibm.read<FloatingIp>("floating_ip", pathOf(id), signal);
        const tag = one === undefined || one.target !== undefined ? null : this.#tagOf(one);
        if (one === undefined || tag === null) return;
        if (this.#parts.names.freeIn(one) === undefined) await this.#free(one, tag, signal);
        else if (this.#idleMs(one) > IDLE_MS) await ibm.delete("floating_ip", pathOf(id), signal);
      },
    };
  }

  close(): void {
    this.#listed.close();
  }

  /** How long an address has been free, milliseconds; infinite: it is not. */
  #idleMs(one: FloatingIp): number {
    const free = this.#parts.names.freeIn(one);
    return free === undefined ? Number.POSITIVE_INFINITY : this.#parts.clock.now() - free.since;
  }

  #tagOf(one: FloatingIp): Tag | null {
    const { names } = this.#parts;
    return names.freeIn(one)?.tag ?? tagOf(names.metadataOf(one));
  }

  #own(all: readonly FloatingIp[], tag: Tag): FloatingIp | undefined {
    return all.find((one) => sameNode(tagOf(this.#parts.names.metadataOf(one)), tag));
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
    await this.#free(own, tag, signal);
    return undefined;
  }

  /** Undefined: there is one, which lists will show. */
  async #make({ tag, pool }: CreateOrder, nic: string, signal: AbortSignal): Promise<FloatingIp | undefined> {
    const { ibm, lookups, names } = this.#parts;
    const group = await lookups.group(names.group(pool.name), signal);
    const body = { name: machineName(tag), resource_group: group, target: { id: nic } };
    try {
      const made = await ibm.call<FloatingIp>("POST", "/floating_ips", signal, { body });
      this.#made.set(made.name, made);
      return made;
    } catch (error) {
      if (!hasCode(error, IN_USE)) throw ofOrder(error);
      // By an earlier try whose answer was lost.
      this.#listed.invalidate();
      return this.#own(await this.#listed.get(signal), tag);
    }
  }

  async #free(one: FloatingIp, { nodeId }: Tag, signal: AbortSignal): Promise<void> {
    this.#made.delete(one.name);
    await this.#rename(one, this.#parts.names.free(nodeId, this.#parts.clock.now()), signal);
  }

  /** One that somebody deleted is neither taken nor free. */
  async #rename({ id }: FloatingIp, name: string, signal: AbortSignal): Promise<void> {
    await unlessMissing(this.#parts.ibm.call("PATCH", pathOf(id), signal, { body: { name } }), "floating_ip");
  }
}
