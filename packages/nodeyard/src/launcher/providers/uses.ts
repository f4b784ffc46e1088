import type { NodeUse, Tag } from "@nodeyard/driver";
import { decodeNode, paths, RecordError } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { orUndefined, type Tree } from "@nodeyard/tree";
import type { OpenProvider } from "../handles.ts";
import type { ProviderHandles } from "./providers.ts";

/** Tells a driver whose machines do something else while nobody uses them who is used: of most changes it hears nothing. */
export async function reconcileUses(
  context: ProviderHandles,
  { provider, config }: OpenProvider,
  signal: AbortSignal,
): Promise<void> {
  const { handover } = provider.offers ?? {};
  try {
    await handover?.reconcile?.((tags) => usesOf(context, config.name, tags), signal);
  } catch (error) {
    const facts = { provider: config.name, error: messageOf(error) };
    context.log.warn(facts, "cannot notify a provider of how its nodes are used; the next sweep will retry");
  }
}

/** One synchronization, and one read for each of the provider's own nodes. */
async function usesOf(
  { tree, installation }: ProviderHandles,
  provider: string,
  tags: readonly Tag[],
): Promise<ReadonlyMap<string, NodeUse>> {
  const ours = tags.filter((tag) => tag.installation === installation && tag.provider === provider);
  if (ours.length === 0) return new Map();
  await tree.sync(paths.nodes);
  return new Map(
    await Promise.all(ours.map(async ({ nodeId }) => [nodeId, await nodeUse(tree, nodeId)] as const)),
  );
}

/** States of a node that somebody has, or may look at. */
const IN_USE: ReadonlySet<string> = new Set(["in-use", "used", "hold", "deleting"]);

/** By the tree itself, since the view may be behind; whoever reads several synchronizes first. One read. */
export async function nodeUse(tree: Tree, id: string): Promise<NodeUse> {
  const found = await orUndefined(tree.get(paths.node(id)));
  if (found === undefined) return "between";
  try {
    const { state, allocatedTo } = decodeNode(id, found.data);
    if (state === "ready") return allocatedTo === null ? "unused" : "between";
    return IN_USE.has(state) ? "used" : "between";
  } catch (error) {
    // Somebody may use it; the other nodes of the provider are reported all the same.
    if (error instanceof RecordError) return "used";
    throw error;
  }
}
