import {
  CALL_MS,
  type CloudPart,
  DriverError,
  machineName,
  type StepContext,
  type Steps,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import type { IbmOrder } from "./config.ts";
import type { Site } from "./lookups.ts";
import type { FloatingIp, Instance } from "./names.ts";

/** Age of a list, milliseconds: many launches at once share one. */
const LISTED_MS = 2_000;
/** An address that no node had for so long is deleted, milliseconds. */
const IDLE_MS = 7 * 86_400_000;

/** Where a machine is, and its interface once it is made. */
type At = { readonly zone: string; readonly nic?: string };

const isPublic = ({ pool }: IbmOrder) => pool.own.publicIpv4;

/**
 * Floating IPs of nodes. IBM charges a month for each, however long it is kept, so the address of a node that is gone waits for a further
 * node; its name says that it is free, and since when.
 *
 * IBM has no way to take an address for one caller alone: of two launchers that rename a free one at the same time, the later one has it. So a
 * free address is renamed before its machine is made, and attached when the machine is up, if it still has that name and no target. The
 * launcher that lost it makes another one.
 */
export function addressesOf({ config, ibm, clock, names, lookups }: Site) {
  /** What this process made or renamed, by id, while lists show no name (undefined), or the one before. */
  const changed = new Map<string, { readonly before: string | undefined; readonly now: FloatingIp }>();
  const listed = (signal: AbortSignal) => ibm.list<FloatingIp>("floating_ips", signal);

  const recent = (signal: AbortSignal) =>
    lookups.known.get("list of floating IPs", { load: listed, freshMs: LISTED_MS }, signal);

  /** All that there are, with what this process changed. */
  const shown = (all: readonly FloatingIp[]): readonly FloatingIp[] => {
    const seen = new Map(all.map(({ id, name }) => [id, name]));
    for (const [id, { before }] of changed) if (seen.get(id) !== before) changed.delete(id);
    return [...all.filter(({ id }) => !changed.has(id)), ...[...changed.values()].map(({ now }) => now)];
  };

  /** How long an address has been free, milliseconds; null: it is not. */
  const idleMs = (one: FloatingIp): number | null => {
    const free = names.freeIn(one);
    return free === undefined ? null : clock.now() - free.since;
  };

  /** The node that an address is left over of; null: it is attached, or somebody else's. */
  const leftOf = (one: FloatingIp): Tag | null =>
    one.target !== undefined ? null : (names.freeIn(one)?.tag ?? tagOf(names.metadataOf(one)));

  const ownIn = (all: readonly FloatingIp[], tag: Tag) =>
    all.find((one) => sameNode(tagOf(names.metadataOf(one)), tag));

  /** An address that was deleted meanwhile is no error. The new name counts at once, so that no other launch of this process takes it. */
  async function rename(one: FloatingIp, name: string, signal: AbortSignal): Promise<void> {
    const { id, name: before } = one;
    const change = { before, now: { ...one, name } };
    changed.set(id, change);
    try {
      await ibm.one("PATCH", "floating_ips", id, signal, { name });
    } catch (error) {
      if (changed.get(id) === change) changed.delete(id);
      throw error;
    }
  }

  const free = (one: FloatingIp, { nodeId }: Tag, signal: AbortSignal) =>
    rename(one, names.free(nodeId, clock.now()), signal);

  /** The node's address in a list, if it can be attached to a machine in the zone. One that cannot goes back to the free ones. */
  async function usable(all: readonly FloatingIp[], tag: Tag, { zone, nic }: At, signal: AbortSignal) {
    const own = ownIn(all, tag);
    if (own?.zone.name === zone && (own.target === undefined || own.target.id === nic)) return own;
    if (own !== undefined) await free(own, tag, signal);
    return undefined;
  }

  async function made(order: IbmOrder, at: At, signal: AbortSignal): Promise<FloatingIp> {
    const group = await lookups.group(names.group(order.pool.name), signal);
    const body = { name: machineName(order.tag), resource_group: group, target: { id: at.nic } };
    const now = await ibm.make<FloatingIp>("floating_ips", body, signal);
    if (now !== undefined) {
      changed.set(now.id, { before: undefined, now });
      return now;
    }
    // By an earlier try whose answer was lost, or claimed by another process. The list that is kept is older.
    const own = await usable(await listed(signal), order.tag, at, signal);
    if (own !== undefined) return own;
    throw new DriverError("transient", "the node's address is not listed yet, or was another machine's");
  }

  /**
   * Addresses of nodes that are gone become free. A free address belongs to no node and counts for no quota; each listing offers the one that
   * has been free for the longest time for deletion, and no more: a sweep that finds many leaks at once stops and doubts its lists.
   */
  const part: CloudPart = {
    async list(signal) {
      const all = await listed(signal);
      const longest = Math.max(...all.map((one) => idleMs(one) ?? 0));
      return all.flatMap((one) => {
        const idle = idleMs(one);
        if (idle !== null && (idle < longest || idle <= IDLE_MS)) return [];
        const on = [/\/instances\/([^/]+)\//.exec(one.target?.href ?? "")?.[1]];
        return { id: one.id, on, tag: leftOf(one) };
      });
    },
    async delete(id, signal) {
      const one = await ibm.one<FloatingIp>("GET", "floating_ips", id, signal);
      const tag = one && leftOf(one);
      if (one === undefined || tag == null) return;
      const idle = idleMs(one);
      if (idle === null) await free(one, tag, signal);
      else if (idle > IDLE_MS) await ibm.one<void>("DELETE", "floating_ips", id, signal);
    },
  };

  return {
    part,

    /** Steps that take a free address for a node, if there is one. `isMade`: its machine is there already, which is too late for that. */
    async *claimed(order: IbmOrder, isMade: boolean, signal: AbortSignal): Steps<undefined> {
      if (isMade || !isPublic(order)) return undefined;
      yield { step: "address", deadlineMs: CALL_MS };
      const { zone } = await lookups.place(order, signal);
      if ((await usable(shown(await recent(signal)), order.tag, { zone }, signal)) !== undefined)
        return undefined;
      const isFree = (one: FloatingIp) => one.status === "available" && one.target === undefined;
      const all = await recent(signal);
      // No await between this look and the new name: of two launches in this process one would get what the other has.
      const found = shown(all).find(
        (one) => one.zone.name === zone && isFree(one) && (idleMs(one) ?? IDLE_MS) < IDLE_MS,
      );
      if (found !== undefined) await rename(found, machineName(order.tag), signal);
      return undefined;
    },

    /**
     * Steps that attach the node's address to its machine, or make one; null: it has none. One that was made before would be paid for also
     * when IBM then has no room for the machine.
     */
    async *attached(order: IbmOrder, machine: Instance, signal: AbortSignal): Steps<string | null> {
      const nic = machine.primary_network_interface?.id;
      if (!isPublic(order) || nic === undefined) return null;
      yield { step: "attach", deadlineMs: CALL_MS };
      const at = { zone: machine.zone.name, nic };
      const known = await usable(shown(await recent(signal)), order.tag, at, signal);
      const own = known ?? (await made(order, at, signal));
      if (own.target !== undefined) return own.address;
      const path = `/instances/${machine.id}/network_interfaces/${nic}/floating_ips/${own.id}`;
      return (await ibm.call<FloatingIp>("PUT", path, signal)).address;
    },

    /** Steps that let further nodes have a node's address. Its machine is deleted next, which detaches it. */
    async *freed(tag: Tag, { externalId, signal }: StepContext): Steps<void> {
      if (!config.pools.some(({ own }) => own.publicIpv4)) return;
      const all = shown(await recent(signal));
      // A record of Nodepool's has the name of both.
      const own = ownIn(all, tag) ?? all.find(({ name }) => name === externalId);
      if (own === undefined) return;
      yield { step: "address", deadlineMs: CALL_MS };
      await free(own, tag, signal);
    },
  };
}
