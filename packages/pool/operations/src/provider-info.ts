import {
  backingData,
  decodeStandings,
  metastaticProviderOf,
  paths,
  STANDINGS,
  slotPlace,
} from "@nodeyard/model";
import { mayBeOf } from "@nodeyard/view";
import { readEach, registeredPools } from "./explain/tree-facts.ts";
import type { OperationHandles } from "./handles.ts";
import { names } from "./images/list.ts";
import type { ProviderRecords } from "./listing/provider-records.ts";
import { listNodes } from "./listing.ts";

/** Of a provider that is configured or not. Reads all nodes, and the names of all uploads. */
export async function providerRecords(handles: OperationHandles, provider: string): Promise<ProviderRecords> {
  const [images, { items, skipped }, servedBy] = await Promise.all([
    uploadsTo(handles, provider),
    listNodes(handles),
    serversOf(handles, provider),
  ]);
  const all = items.map(({ record }) => record);
  const nodes = all.filter((record) => record.provider === provider);
  const backings = all.filter(
    (record) => metastaticProviderOf(backingData(record)?.owner ?? null) === provider,
  );
  return {
    images,
    nodes: nodes.map((node) => ({
      id: node.id,
      server_id: node.externalId,
      backing_node: slotPlace(node)?.backing ?? null,
      slot: node.slot,
    })),
    backing_nodes: backings.map(({ id, provider, state }) => ({ id, provider, state })),
    served_by: servedBy,
    unreadable: skipped.filter(({ known }) => mayBeOf(known, provider)).map(({ id }) => id),
    skipped: skipped.map(({ path, why }) => ({ path, why })),
  };
}

/**
 * Hosts of the launchers that delete the nodes of a provider, sorted: those with a pool of it, and those that report it without one, since
 * it cannot be opened, or, unless `leaving` is false, left their configuration with nodes.
 */
export async function serversOf(
  { tree }: OperationHandles,
  provider: string,
  leaving = true,
): Promise<readonly string[]> {
  const [pools, reports] = await Promise.all([
    registeredPools(tree),
    readEach(tree, STANDINGS, (_, data) => decodeStandings(data)),
  ]);
  const serving = [
    ...pools.filter(({ providerName }) => providerName === provider),
    ...reports.filter(({ facts }) =>
      facts.some(
        ({ kind, name, code }) =>
          kind === "provider" && name === provider && (leaving || code !== "provider.leaving"),
      ),
    ),
  ];
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

/** By image, then by build; those without an upload to the provider are left out. */
export async function uploadsTo(
  handles: OperationHandles,
  provider: string,
): Promise<ProviderRecords["images"]> {
  const found: ProviderRecords["images"][number][] = [];
  for (const image of await names(handles, paths.images))
    for (const build of await names(handles, paths.imageBuilds(image))) {
      const ids = await names(handles, paths.imageUploads(image, build, provider));
      if (ids.length > 0) found.push({ image, build, uploads: ids });
    }
  return found;
}
