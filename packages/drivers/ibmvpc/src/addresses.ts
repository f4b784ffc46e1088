import {
  CALL_MS,
  type CloudPart,
  DriverError,
  machineName,
  SharedValue,
  type StepContext,
  type Steps,
  sameNode,
  type Tag,
  tagOf,
  wasRefused,
} from "@nodeyard/driver";
import type { IbmOrder } from "./config.ts";
import { IN_USE, ofOrder, unlessMissing } from "./errors.ts";
import type { Site } from "./lookups.ts";
import type { FloatingIp, Instance } from "./names.ts";

/** Age of a list, milliseconds: many launches at once share one. */
const LISTED_MS = 2_000;
/** An address that no node had for so long is deleted, milliseconds. */
const IDLE_MS = 7 * 86_400_000;

const pathOf = (id: string) => `/floating_ips/${encodeURIComponent(id)}`;
const isPublic = ({ pool }: IbmOrder) => pool.own.publicIpv4;

/**
 * Floating IPs of nodes. IBM charges a month for each, however long it is kept, so the address of a node that is gone waits for a further
 * node; its name says that it is free, and since when.
 *
 * IBM has no way to take an address for one caller alone: of two launchers that rename a free one at the same time, the later one has it. So a
 * free address is renamed before its machine is made, and attached when the machine is up, if it still has that name and no target. The
 * launcher that lost it makes another one.
 */
export class Addresses {
  readonly #site: Site;
  readonly #listed: SharedValue<readonly FloatingIp[]>;
  /** What this process made or renamed, by id, while lists show no name (undefined), or the one before. */
  readonly #changed = new Map<string, { readonly before: string | undefined; readonly now: FloatingIp }>();

  constructor(site: Site) {
    this.#site = site;
    this.#listed = new SharedValue({
      ...{ clock: site.clock, what: "list of floating IPs", freshMs: LISTED_MS },
      load: (signal) => site.ibm.list<FloatingIp>("floating_ips", signal),
    });
  }

  /** Steps that take a free address for a node, if there is one. `isMade`: its machine is there already, which is too late for that. */
  async *claimed(order: IbmOrder, isMade: boolean, signal: AbortSignal): Steps<undefined> {
    if (isMade || !isPublic(order)) return undefined;
    yield { step: "address", deadlineMs: CALL_MS };
    const { zone } = await this.#site.lookups.place(order, signal);
    if ((await this.#usable(order, zone, undefined, signal)) !== undefined) return undefined;
    const isFree = (one: FloatingIp) => one.status === "available" && one.target === undefined;
    // No await between this look and the new name: of two launches in this process one would get what the other has.
    const listed = await this.#listed.get(signal);
    const free = this.#shown(listed).find(
      (one) => one.zone.name === zone && isFree(one) && (this.#idleMs(one) ?? IDLE_MS) < IDLE_MS,
    );
    if (free !== undefined) await this.#rename(free, machineName(order.tag), signal);
    return undefined;
  }

  /**
   * Steps that attach the node's address to its machine, or make one; null: it has none. One that was made before would be paid for also
   * when IBM then has no room for the machine.
   */
  async *attached(order: IbmOrder, machine: Instance, signal: AbortSignal): Steps<string | null> {
    const nic = machine.primary_network_interface?.id;
    if (!isPublic(order) || nic === undefined) return null;
    yield { step: "attach", deadlineMs: CALL_MS };
    const own =
      (await this.#usable(order, machine.zone.name, nic, signal)) ??
      (await this.#make(order, machine.zone.name, nic, signal));
    if (own.target !== undefined) return own.address;
    const path = `/instances/${machine.id}/network_interfaces/${nic}/floating_ips/${own.id}`;
    return (await this.#site.ibm.call<FloatingIp>("PUT", path, signal)).address;
  }

  /** Steps that let further nodes have a node's address. Its machine is deleted next, which detaches it. */
  async *freed(tag: Tag, { externalId, signal }: StepContext): Steps<void> {
    if (!this.#site.config.pools.some(({ own }) => own.publicIpv4)) return;
    const all = await this.#all(signal);
    // A record of Nodepool's has the name of both.
    const own = this.#own(all, tag) ?? all.find(({ name }) => name === externalId);
    if (own === undefined) return;
    yield { step: "address", deadlineMs: CALL_MS };
    await this.#free(own, tag, signal);
  }

  /**
   * Addresses of nodes that are gone become free. A free address belongs to no node and counts for no quota; each listing offers the one that
   * has been free for the longest time for deletion, and no more: a sweep that finds many leaks at once stops and doubts its lists.
   */
  get part(): CloudPart {
    const { ibm } = this.#site;
    return {
      list: async (signal) => {
        const all = await ibm.list<FloatingIp>("floating_ips", signal);
        const longest = Math.max(...all.map((one) => this.#idleMs(one) ?? 0));
        return all.flatMap((one) => {
          const idleMs = this.#idleMs(one);
          if (idleMs !== null && (idleMs < longest || idleMs <= IDLE_MS)) return [];
          const on = [/\/instances\/([^/]+)\//.exec(one.target?.href ?? "")?.[1]];
          return { id: one.id, on, tag: this.#tagOf(one) };
        });
      },
      delete: async (id, signal) => {
        const one = await ibm.read<FloatingIp>("floating_ip", pathOf(id), signal);
        const tag = one && this.#tagOf(one);
        if (one === undefined || tag == null) return;
        const idleMs = this.#idleMs(one);
        if (idleMs === null) await this.#free(one, tag, signal);
        else if (idleMs > IDLE_MS) await ibm.delete("floating_ip", pathOf(id), signal);
      },
    };
  }

  close(): void {
    this.#listed.close();
  }

  /** How long an address has been free, milliseconds; null: it is not. */
  #idleMs(one: FloatingIp): number | null {
    const free = this.#site.names.freeIn(one);
    return free === undefined ? null : this.#site.clock.now() - free.since;
  }

  /** The node that an address is left over of; null: it is attached, or somebody else's. */
  #tagOf(one: FloatingIp): Tag | null {
    const { names } = this.#site;
    if (one.target !== undefined) return null;
    return names.freeIn(one)?.tag ?? tagOf(names.metadataOf(one));
  }

  /** All that there are, with what this process changed. */
  async #all(signal: AbortSignal): Promise<readonly FloatingIp[]> {
    return this.#shown(await this.#listed.get(signal));
  }

  #shown(listed: readonly FloatingIp[]): readonly FloatingIp[] {
    const names = new Map(listed.map(({ id, name }) => [id, name]));
    for (const [id, { before }] of this.#changed) if (names.get(id) !== before) this.#changed.delete(id);
    const changed = [...this.#changed.values()].map(({ now }) => now);
    return [...listed.filter(({ id }) => !this.#changed.has(id)), ...changed];
  }

  #own(all: readonly FloatingIp[], tag: Tag): FloatingIp | undefined {
    return all.find((one) => sameNode(tagOf(this.#site.names.metadataOf(one)), tag));
  }

  /** The node's address, if it can be attached to a machine in the zone. One that cannot goes back to the free ones. */
  async #usable({ tag }: IbmOrder, zone: string, nic: string | undefined, signal: AbortSignal) {
    const own = this.#own(await this.#all(signal), tag);
    if (own?.zone.name === zone && (own.target === undefined || own.target.id === nic)) return own;
    if (own !== undefined) await this.#free(own, tag, signal);
    return undefined;
  }

  async #make(order: IbmOrder, zone: string, nic: string, signal: AbortSignal): Promise<FloatingIp> {
    const { ibm, lookups, names } = this.#site;
    const { tag, pool } = order;
    const group = await lookups.group(names.group(pool.name), signal);
    const body = { name: machineName(tag), resource_group: group, target: { id: nic } };
    try {
      const now = await ibm.call<FloatingIp>("POST", "/floating_ips", signal, { body });
      this.#changed.set(now.id, { before: undefined, now });
      return now;
    } catch (error) {
      if (!wasRefused(error, IN_USE)) throw ofOrder(error);
    }
    // By an earlier try whose answer was lost, or claimed by another process.
    this.#listed.invalidate();
    const own = await this.#usable(order, zone, nic, signal);
    if (own !== undefined) return own;
    throw new DriverError("transient", "the node's address is not listed yet, or was another machine's");
  }

  #free(one: FloatingIp, { nodeId }: Tag, signal: AbortSignal): Promise<void> {
    return this.#rename(one, this.#site.names.free(nodeId, this.#site.clock.now()), signal);
  }

  /** An address that was deleted meanwhile is no error. The new name counts at once, so that no other launch of this process takes it. */
  async #rename(one: FloatingIp, name: string, signal: AbortSignal): Promise<void> {
    const { id, name: before } = one;
    const change = { before, now: { ...one, name } };
    this.#changed.set(id, change);
    try {
      const renamed = this.#site.ibm.call("PATCH", pathOf(id), signal, { body: { name } });
      await unlessMissing(renamed, "floating_ip");
    } catch (error) {
      if (this.#changed.get(id) === change) this.#changed.delete(id);
      throw error;
    }
  }
}
