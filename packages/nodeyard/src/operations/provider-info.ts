import { backingData, metastaticProviderOf, type NodeRecord, paths, slotPlace } from "@nodeyard/model";
import { mayBeOf } from "../view/index.ts";
import { registeredPools } from "./explain/tree-facts.ts";
import type { OperationHandles } from "./handles.ts";
import { names } from "./images/list.ts";
import { type Listing, listNodes, type UnreadableNode } from "./listing.ts";

/** A build of an image with its uploads to one provider. */
export interface UploadedImage {
  readonly image: string;
  readonly build: string;
  /** Their numbers. */
  readonly uploads: readonly string[];
}

/** What the tree holds of a provider, whether it is configured or not. */
export interface ProviderInfo {
  /** By image, then by build. */
  readonly images: readonly UploadedImage[];
  readonly nodes: Listing<NodeRecord>;
  /** Unreadable nodes that may belong to the provider; until they are repaired or removed, its leak sweeps delete nothing. */
  readonly unreadable: readonly UnreadableNode[];
  /** Nodes of other providers that carry slots of this one. An erase does not touch them. */
  readonly backings: readonly NodeRecord[];
  /** Hosts of the launchers that have a pool of it registered. */
  readonly servedBy: readonly string[];
}

/**
 * What the tree has of a provider, configured or not: uploads, nodes, backing nodes, and who serves it. Reads all nodes, and the
 * names of all uploads.
 */
export async function providerInfo(handles: OperationHandles, provider: string): Promise<ProviderInfo> {
  const [images, listed, servedBy] = await Promise.all([
    uploads(handles, provider),
    listNodes(handles),
    serversOf(handles, provider),
  ]);
  const all = listed.items.map(({ record }) => record);
  const nodes = all.filter((record) => record.provider === provider);
  const backings = all.filter(
    (record) => metastaticProviderOf(backingData(record)?.owner ?? null) === provider,
  );
  const unreadable = listed.skipped.filter(({ known }) => mayBeOf(known, provider));
  return { images, nodes: { items: nodes, skipped: listed.skipped }, unreadable, backings, servedBy };
}

/** The same for programs: what `nodeyard info --json` prints. Keys are never renamed. */
export interface ProviderRecords {
  readonly images: readonly UploadedImage[];
  readonly nodes: readonly {
    readonly id: string;
    readonly server_id: unknown;
    readonly backing_node: string | null;
    readonly slot: number | null;
  }[];
  readonly backing_nodes: readonly {
    readonly id: string;
    readonly provider: string | null;
    readonly state: string;
  }[];
  readonly served_by: readonly string[];
  readonly unreadable: readonly string[];
  readonly skipped: readonly { readonly path: string; readonly why: string }[];
}

/** Reduces what the tree has of a provider to the keys that `nodeyard info --json` prints. */
export function providerRecords({
  images,
  nodes,
  unreadable,
  backings,
  servedBy,
}: ProviderInfo): ProviderRecords {
  return {
    images: images.map(({ image, build, uploads }) => ({ image, build, uploads })),
    nodes: nodes.items.map((node) => ({
      id: node.id,
      server_id: node.externalId,
      backing_node: slotPlace(node)?.backing ?? null,
      slot: node.slot,
    })),
    backing_nodes: backings.map(({ id, provider, state }) => ({ id, provider, state })),
    served_by: servedBy,
    unreadable: unreadable.map(({ id }) => id),
    skipped: nodes.skipped.map(({ path, why }) => ({ path, why })),
  };
}

/** Hosts of the launchers whose registered pools serve a provider, sorted. */
export async function serversOf({ tree }: OperationHandles, provider: string): Promise<readonly string[]> {
  const pools = await registeredPools(tree);
  const serving = pools.filter(({ providerName }) => providerName === provider);
  return [...new Set(serving.map(({ hostname }) => hostname))].sort();
}

/** Names of all providers that launchers serve or that nodes and uploads in the tree belong to. */
export async function knownProviders(handles: OperationHandles): Promise<readonly string[]> {
  const [pools, nodes] = await Promise.all([registeredPools(handles.tree), listNodes(handles)]);
  const known = new Set<string | null>(pools.map(({ providerName }) => providerName));
  for (const { record } of nodes.items) known.add(record.provider);
  for (const image of await names(handles, paths.images))
    for (const build of await names(handles, paths.imageBuilds(image)))
      for (const provider of await names(handles, paths.imageProviders(image, build))) known.add(provider);
  return [...known].filter((name) => name !== null).sort();
}

async function uploads(handles: OperationHandles, provider: string): Promise<readonly UploadedImage[]> {
  const found: UploadedImage[] = [];
  for (const image of await names(handles, paths.images))
    for (const build of await names(handles, paths.imageBuilds(image))) {
      const ids = await names(handles, paths.imageUploads(image, build, provider));
      if (ids.length > 0) found.push({ image, build, uploads: ids });
    }
  return found;
}
