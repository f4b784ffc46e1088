import type { NodeRecord } from "./node.ts";

/** Folder of the claims of slots: `<backing node>/<slot>`. */
export const SLOTS = "/nodeyard/slots";

const VERSION = 1;
const OWNER = "NodePool:metastatic:";

/**
 * Owner of a backing node, as it appears in three places: requestor of its request, owner in its record, data of its lock
 * (docs/contract/drivers.md, "Metastatic records").
 */
export function backingOwner(provider: string): string {
  return `${OWNER}${provider}`;
}

/** The metastatic provider that an owner names; undefined for any other owner. */
export function metastaticProviderOf(owner: string | null): string | undefined {
  return owner?.startsWith(OWNER) ? owner.slice(OWNER.length) : undefined;
}

/** How a backing node is used, from its record (docs/contract/drivers.md, "Metastatic records"). */
export interface BackingData {
  readonly owner: string;
  /** Label of the slots, not of the backing node. */
  readonly label: string;
  readonly slots: number;
  /** The node takes no more slots and is deleted once it is empty. */
  readonly failed: boolean;
  /** Seconds since the epoch; the node's age counts from here. */
  readonly launched: number;
}

/** Reads `user_data` of a backing node; undefined for other nodes. Defaults for old records: not failed, age unknown. */
export function backingData({ userData }: Pick<NodeRecord, "userData">): BackingData | undefined {
  if (typeof userData !== "string" || !userData.includes(OWNER)) return undefined;
  let value: Record<string, unknown> | null;
  try {
    value = JSON.parse(userData) as typeof value;
  } catch {
    return undefined;
  }
  const { owner, label, slots, failed = false, launched = 0 } = value ?? {};
  if (typeof owner !== "string" || metastaticProviderOf(owner) === undefined) return undefined;
  return {
    owner,
    label: typeof label === "string" ? label : "",
    slots: typeof slots === "number" && Number.isInteger(slots) && slots > 0 ? slots : 0,
    failed: failed === true,
    launched: typeof launched === "number" && Number.isFinite(launched) ? launched : 0,
  };
}

/** `user_data` as Nodepool reads it: a JSON string. Other members of `before` are kept. */
export function encodeBacking(data: BackingData, before: unknown = undefined): string {
  const { owner, label, slots, failed, launched } = data;
  return JSON.stringify({ ...parsed(before), owner, label, slots, failed, launched });
}

function parsed(text: unknown): object {
  if (typeof text !== "string") return {};
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

/** The slot of a node. */
export interface SlotPlace {
  readonly backing: string;
  readonly slot: number;
}

/** The slot in the `driver_data` of a node (docs/contract/drivers.md, "Metastatic records"); undefined for a node without a slot. */
export function slotPlace({ driverData }: Pick<NodeRecord, "driverData">): SlotPlace | undefined {
  if (typeof driverData !== "object" || driverData === null) return undefined;
  const { backing_node: backing, slot } = driverData as Record<string, unknown>;
  if (typeof backing !== "string" || !/^\d+$/.test(backing)) return undefined;
  return typeof slot === "number" && Number.isInteger(slot) && slot >= 0 ? { backing, slot } : undefined;
}

/** The `driver_data` of a node with a slot, as Nodepool writes it. */
export function slotData(
  node: { readonly id: string; readonly pool: string; readonly provider: string },
  place: SlotPlace,
): object {
  return {
    metadata: {
      nodepool_node_id: node.id,
      nodepool_pool_name: node.pool,
      nodepool_provider_name: node.provider,
    },
    backing_node: place.backing,
    slot: place.slot,
    node: node.id,
  };
}

/**
 * `driver_data` of a node whose slot is freed. Nodepool then writes null for the backing node (docs/contract/drivers.md,
 * "Metastatic records").
 */
export function withoutPlace({ driverData }: Pick<NodeRecord, "driverData">): object {
  return { ...(driverData as object), backing_node: null };
}

/** Folder of the claims of a backing node. Until it exists, no slot of the node can be claimed. */
export function slotsFolder(backing: string): string {
  return `${SLOTS}/${backing}`;
}

/** Path of the claim of a slot. The launcher that creates it has the slot. */
export function claimPath(backing: string, name: string | number): string {
  return `${SLOTS}/${backing}/${name}`;
}

/** Claim of a node whose slot another node has, which older launchers could cause. It keeps the backing node alive without a slot. */
export function spareName(node: string): string {
  return `also-${node}`;
}

/** Data of a slots folder. It names the provider, which deletes the folder when the backing node is gone. */
export function encodeFolder(provider: string): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, provider }));
}

/** The provider of a slots folder; null when the data does not name one. */
export function folderProvider(data: Uint8Array): string | null {
  return textMember(data, "provider");
}

/** Data of a claim: the node that has the slot. */
export function encodeClaim(node: string): Uint8Array {
  return Buffer.from(JSON.stringify({ v: VERSION, node }));
}

/** The node of a claim; null for an unreadable claim, which still occupies its slot (rule 6). */
export function decodeClaim(data: Uint8Array): string | null {
  return textMember(data, "node");
}

function textMember(data: Uint8Array, name: string): string | null {
  try {
    const value = (JSON.parse(Buffer.from(data).toString()) as Record<string, unknown>)[name];
    return typeof value === "string" ? value : null;
  } catch {
    return null;
  }
}

/** Child of a slots folder with the reason why the backing node takes no more slots. It exists until the owner has updated the node. */
export const RETIRED = "retired";

/** What a path below `SLOTS` is. */
export type SlotsPath =
  | { readonly kind: "folder"; readonly backing: string }
  | { readonly kind: "retired"; readonly backing: string }
  | { readonly kind: "claim"; readonly backing: string; readonly name: string };

/** Parses a path below the folder of slots; undefined for all other paths. */
export function slotsPath(path: string): SlotsPath | undefined {
  if (!path.startsWith(`${SLOTS}/`)) return undefined;
  const [backing, name, ...more] = path.slice(SLOTS.length + 1).split("/");
  if (backing === undefined || backing === "" || more.length > 0) return undefined;
  if (name === undefined) return { kind: "folder", backing };
  return name === RETIRED ? { kind: "retired", backing } : { kind: "claim", backing, name };
}
