import type { NodeUse, Tag } from "@nodeyard/driver";
import { paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";

import type { OpenProvider } from "../handles.ts";
import { nodeUse } from "../metastatic/backings.ts";
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
