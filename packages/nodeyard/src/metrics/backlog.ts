import type { View } from "../view/index.ts";
import { type Gauge, gaugeOf } from "./gauges.ts";

/** The caches of the old launcher, and what of the tree each is of. */
const CACHES: Readonly<Record<string, string>> = {
  "/nodepool/nodes": "node",
  "/nodepool/requests": "request",
  "/nodepool/images": "image",
};

/** How far the picture of the tree is behind (docs/contract/operations.md, "Figures of the whole"). */
export function backlogGauges(view: View): readonly Gauge[] {
  return [...view.backlog()].flatMap(([root, { events, walk }]) => {
    const cache = CACHES[root];
    if (cache === undefined) return [];
    return [
      gaugeOf("tree_reads_pending", events, cache, "event"),
      gaugeOf("tree_reads_pending", walk, cache, "playback"),
    ];
  });
}
