import {
  type BackingData,
  backingData,
  backingOwner,
  decodeClaim,
  type NodeRecord,
  RETIRED,
  type RequestRecord,
  slotPlace,
  slotsFolder,
} from "@nodeyard/model";
import { orUndefined } from "@nodeyard/tree";
import type { OperationHandles } from "../handles.ts";
import { listRequests } from "../listing.ts";

/**
 * What the tree says of a node's slot, of the slots that it carries, or of the backing node that it waits for. `claimed`: Nodeyard
 * gives out the slots of the backing node; else a launcher of another kind does.
 */
export type SlotFacts =
  | { readonly kind: "slot"; readonly backing: string; readonly slot: number; readonly claimed: boolean }
  | {
      readonly kind: "carries";
      readonly data: BackingData;
      readonly taken: Readonly<Record<string, string>>;
      readonly claimed: boolean;
    }
  | { readonly kind: "waits"; readonly requests: readonly RequestRecord[] };

/**
 * The facts of one node; undefined for a node that has nothing to do with slots. One that is being launched waits when its
 * provider has requests for backing nodes: which of them it will get is decided when one is there.
 */
export async function slotFacts(
  handles: OperationHandles,
  record: NodeRecord,
): Promise<SlotFacts | undefined> {
  const data = backingData(record);
  const backing = data === undefined ? slotPlace(record)?.backing : record.id;
  const claimed = backing !== undefined && (await handles.tree.stat(slotsFolder(backing))) !== undefined;
  if (data !== undefined)
    return { kind: "carries", data, taken: await takenSlots(handles, record.id), claimed };
  const place = slotPlace(record);
  if (place !== undefined) return { kind: "slot", ...place, claimed };
  if (record.state !== "building" || record.provider === null) return undefined;
  const owner = backingOwner(record.provider);
  const requests = (await listRequests(handles)).items.filter(({ requestor }) => requestor === owner);
  return requests.length === 0 ? undefined : { kind: "waits", requests };
}

/** Requests for backing nodes that nodes being launched wait for, each once. */
export async function backingRequests(
  handles: OperationHandles,
  nodes: readonly NodeRecord[],
): Promise<readonly string[]> {
  const byProvider = new Map(
    nodes.filter(({ state }) => state === "building").map((node) => [node.provider, node]),
  );
  const facts = await Promise.all([...byProvider.values()].map((node) => slotFacts(handles, node)));
  return facts.flatMap((fact) => (fact?.kind === "waits" ? fact.requests.map(({ id }) => id) : []));
}

/** Ids of nodes by slot; "" for a claim that has just gone, or that cannot be read. */
async function takenSlots(
  { tree }: OperationHandles,
  backing: string,
): Promise<Readonly<Record<string, string>>> {
  const folder = slotsFolder(backing);
  const names = ((await orUndefined(tree.children(folder))) ?? []).filter((name) => name !== RETIRED);
  const taken = await Promise.all(
    names.sort().map(async (name) => {
      const found = await orUndefined(tree.get(`${folder}/${name}`));
      return [name, found === undefined ? "" : (decodeClaim(found.data) ?? "")] as const;
    }),
  );
  return Object.fromEntries(taken);
}

/** Lines for the head of a node's story. */
export function slotAbout(facts: SlotFacts | undefined): Readonly<Record<string, unknown>> {
  if (facts?.kind === "slot") return { backing_node: facts.backing, slot: facts.slot };
  if (facts?.kind !== "carries") return {};
  const { label, slots, failed } = facts.data;
  return { slots_of: label, slots, slots_taken: facts.taken, takes_no_more: failed };
}
