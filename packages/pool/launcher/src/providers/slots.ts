import type { InventoryItem } from "@nodeyard/driver";
import type { NodeEntry, UnreadableEntry } from "@nodeyard/view";

/** What an inventory lacks or has too much of. */
export interface SlotPlan {
  /** Hosts with the slots that have no record. */
  readonly register: readonly { readonly item: InventoryItem; readonly slots: readonly number[] }[];
  /** Ready, free records of hosts or slots that are not in the configuration. */
  readonly deregister: readonly string[];
  /** Records of such hosts or slots that are in use: they go when they are free. */
  readonly leaving: readonly string[];
  /** Ready, free records whose host's settings changed. */
  readonly update: readonly { readonly item: InventoryItem; readonly node: string }[];
  /** Paths of records that cannot be read, and may be of slots that are not registered therefore. */
  readonly doubtful: ReadonlySet<string>;
}

/** States in which a record does not occupy its slot (docs/contract/drivers.md, "Static records"). */
const GIVEN_UP: ReadonlySet<string> = new Set(["building", "deleting", "deleted"]);

/**
 * Compares an inventory with the records of its provider, all hosts with all nodes. Pure. A record without a slot number takes the
 * first empty slot of its host; records past the last slot are deleted once they are free. An unreadable record occupies each slot
 * that it may belong to, because its user may have the host (rule 1).
 */
export function planSlots(
  items: readonly InventoryItem[],
  nodes: readonly NodeEntry[],
  unreadable: readonly UnreadableEntry[],
): SlotPlan {
  const doubtful = new Set<string>();
  const register: { item: InventoryItem; slots: number[] }[] = [];
  const update: { item: InventoryItem; node: string }[] = [];
  const byHost = groupByHost(nodes);
  const unwanted: NodeEntry[] = [];
  for (const item of items) {
    const key = hostKey(
      item.machine.hostname ?? item.machine.interfaceIp,
      item.connection.username,
      item.connection.port,
    );
    const placed = place(item, byHost.get(key) ?? []);
    // The entries that are left at the end belong to hosts that are not configured.
    byHost.delete(key);
    unwanted.push(...placed.excess);
    const empty = placed.slots.flatMap((node, slot) => {
      const taken = node !== undefined ? [] : unreadable.filter(({ known }) => mayHave(known, item, slot));
      for (const { path } of taken) doubtful.add(path);
      return node === undefined && taken.length === 0 ? [slot] : [];
    });
    if (empty.length > 0) register.push({ item, slots: empty });
    for (const node of placed.slots) {
      if (node !== undefined && isFree(node) && differs(item, node)) update.push({ item, node: node.id });
    }
  }
  for (const orphans of byHost.values()) unwanted.push(...orphans);
  const [free, used] = [unwanted.filter(isFree), unwanted.filter((node) => !isFree(node))];
  const ids = (nodes: readonly NodeEntry[]) => nodes.map(({ id }) => id);
  return { register, deregister: ids(free), leaving: ids(used), update, doubtful };
}

/** Records by the host that they name, oldest first: of two with one slot number the older keeps it. */
function groupByHost(nodes: readonly NodeEntry[]): Map<string, NodeEntry[]> {
  const byHost = new Map<string, NodeEntry[]>();
  for (const node of [...nodes].sort((a, b) => (a.id < b.id ? -1 : 1))) {
    if (GIVEN_UP.has(node.record.state)) continue;
    const key = hostKey(node.record.hostname, node.record.username, node.record.connectionPort);
    const list = byHost.get(key);
    if (list === undefined) byHost.set(key, [node]);
    else list.push(node);
  }
  return byHost;
}

/** Gives each record of a host its slot. `slots` has one member for each slot of the host; `excess` are the records that get none. */
function place(
  item: InventoryItem,
  nodes: readonly NodeEntry[],
): { readonly slots: (NodeEntry | undefined)[]; readonly excess: NodeEntry[] } {
  const slots: (NodeEntry | undefined)[] = Array.from({ length: item.slots }, () => undefined);
  const homeless: NodeEntry[] = [];
  for (const node of nodes) {
    const { slot } = node.record;
    if (
      slot !== null &&
      Number.isInteger(slot) &&
      slot >= 0 &&
      slot < slots.length &&
      slots[slot] === undefined
    )
      slots[slot] = node;
    else homeless.push(node);
  }
  const excess: NodeEntry[] = [];
  for (const node of homeless) {
    const empty = slots.indexOf(undefined);
    // A record whose number is taken or too large is one too many, and gets no other slot.
    if (empty >= 0 && node.record.slot === null) slots[empty] = node;
    else excess.push(node);
  }
  return { slots, excess };
}

/** A host that changed pool is taken out and registered again; settings change in place. */
function differs(item: InventoryItem, { record }: NodeEntry): boolean {
  const { connection } = item;
  return (
    record.type.join("\n") !== item.labels.join("\n") ||
    record.shellType !== connection.shellType ||
    record.pythonPath !== connection.pythonPath ||
    record.connectionType !== connection.type ||
    record.pool !== item.pool
  );
}

/** Whether a record of which only `known` can be read may belong to a slot: to the one that it names, otherwise to any. */
function mayHave(
  { hostname, slot }: UnreadableEntry["known"],
  { machine }: InventoryItem,
  at: number,
): boolean {
  if (typeof hostname !== "string") return true;
  if (hostname !== (machine.hostname ?? machine.interfaceIp)) return false;
  return typeof slot !== "number" || slot === at;
}

/** Whether a change of a record or of its locks makes it free. */
export function becameFree(event: {
  readonly before?: NodeEntry | undefined;
  readonly after?: NodeEntry | undefined;
}): boolean {
  const { before, after } = event;
  return after !== undefined && isFree(after) && before !== undefined && !isFree(before);
}

/** May be changed or deleted without asking anybody: no request has it, and nobody locks it. */
function isFree({ record, contenders }: NodeEntry): boolean {
  return record.state === "ready" && record.allocatedTo === null && contenders.length === 0;
}

/** As text that no name can imitate: a slash or colon in a host's name must not join two hosts. */
function hostKey(host: string | null, username: string | null, port: unknown): string {
  return JSON.stringify([host, username, port]);
}
