import { paths } from "@nodeyard/model";
import { orUndefined, TreeError } from "@nodeyard/tree";
import type { BuilderContext } from "./context.ts";
import { pathsBeneath } from "./janitor.ts";

/**
 * Removes what the tree keeps of images that left the configuration once their last build is gone: nothing but a name, which commands
 * would take for an image that somebody builds. A flag on it is an operator's word, and stays.
 */
export async function sweepForgotten(context: BuilderContext): Promise<void> {
  const { tree, view, settings, log } = context;
  if (!view.complete) return;
  for (const image of (await orUndefined(tree.children(paths.images))) ?? []) {
    if (settings.images.has(image) || view.images.get(image) !== undefined) continue;
    const path = paths.image(image);
    const children = (await orUndefined(tree.children(path))) ?? [];
    if (children.some((name) => `${path}/${name}` !== paths.imageBuilds(image))) continue;
    const below = await pathsBeneath(context, path);
    if (below === undefined) continue;
    try {
      // Whole or not at all: what somebody makes beneath it meanwhile keeps it.
      await tree.commit([...below, path].map((one) => ({ op: "delete" as const, path: one })));
      log.info({ image }, "removed the record of an image that has no builds and is not configured");
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      log.debug({ image, error: error.message }, "cannot remove the record of an unused image; will retry");
    }
  }
}
