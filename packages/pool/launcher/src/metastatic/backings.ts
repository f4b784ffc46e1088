import type { BackingNode, Backings, NodeUse } from "@nodeyard/driver";
import {
  decodeClaim,
  decodeNode,
  type NodeRecord,
  paths,
  RETIRED,
  readable,
  slotsFolder,
} from "@nodeyard/model";
import { retireBacking } from "@nodeyard/operations";
import { orUndefined, type Tree } from "@nodeyard/tree";
import type { Backing } from "@nodeyard/view";
import type { Handles } from "../handles.ts";

/**
 * The backing nodes of a provider, as its driver sees them. `uses` reads the tree and rejects with a TreeError, also for a node
 * without a slots folder; `retire` writes, and the others read the view.
 */
export function backingsOf(
  { view, tree, noteCaches }: Pick<Handles, "view" | "tree"> & Pick<Backings, "noteCaches">,
  provider: string,
): Backings {
  const nodes = (ids: Iterable<string>) =>
    [...ids].flatMap((id) => {
      const backing = view.slots.backings.get(id);
      return backing?.provider === provider ? [backingNode(backing)] : [];
    });
  return {
    all: () => nodes(view.slots.byProvider.get(provider)),
    of(nodeId) {
      const record = view.nodes.byId.get(nodeId)?.record;
      if (record === undefined) return undefined;
      const on = new Set(view.slots.claimsOf(nodeId).map(({ backing }) => backing));
      return { label: record.type[0] ?? "", notes: notesOf(record), on: nodes(on) };
    },
    isRetired: (id) => view.slots.retired.has(id),
    noteCaches,
    retire: (id, why) => retireBacking(tree, id, why),
    async uses(id, how) {
      const folder = slotsFolder(id);
      await tree.sync(folder);
      const names = (await tree.children(folder)).filter((name) => name !== RETIRED);
      const claims = await Promise.all(names.map((name) => orUndefined(tree.get(`${folder}/${name}`))));
      const owners = claims.flatMap((claim) => (claim === undefined ? [] : (decodeClaim(claim.data) ?? [])));
      const uses = owners.map(
        async (node): Promise<[string, NodeUse]> => [node, how ? await nodeUse(tree, node) : "between"],
      );
      return new Map(await Promise.all(uses));
    },
  };
}

/** A backing node as drivers get it. `launched` is in seconds; the port is that of SSH where the record names none, or not as a number. */
export function backingNode({ id, data, entry }: Backing): BackingNode {
  const { interfaceIp, connectionPort, hostKeys } = entry.record;
  const { label, slots, launched } = data;
  const port = typeof connectionPort === "number" ? connectionPort : 22;
  return { id, host: interfaceIp, port, hostKeys, label, slots, launched };
}

/** The record's `driver_data`, which has the notes that the driver gave for the slot. */
function notesOf({ driverData }: NodeRecord): Readonly<Record<string, unknown>> {
  return typeof driverData === "object" && driverData !== null ? (driverData as Record<string, unknown>) : {};
}

/** States of a node that a client uses or an operator may look at. A node in `deleting` may still run its job's last processes. */
const IN_USE: ReadonlySet<string> = new Set(["in-use", "used", "hold", "deleting"]);

/**
 * One read of the tree, because the view may be behind. Call `sync` first when reading several. "between": neither idle nor used, as
 * while it is being made or handed over.
 */
export async function nodeUse(tree: Tree, id: string): Promise<NodeUse> {
  const found = await orUndefined(tree.get(paths.node(id)));
  if (found === undefined) return "between";
  const record = readable(() => decodeNode(id, found.data));
  // An unreadable node may be in use. It does not keep the other nodes of the provider from being reported.
  if (record === undefined) return "used";
  if (record.state === "ready") return record.allocatedTo === null ? "unused" : "between";
  return IN_USE.has(record.state) ? "used" : "between";
}
