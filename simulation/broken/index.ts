import type { Tree } from "@nodeyard/tree";
import { withoutFences } from "./fencing.ts";
import { withoutReservation } from "./reservation.ts";

/**
 * Builds that lack what keeps the rules, to show that the checks find it: without fences, without the reservation of limits
 * among launchers, without the intent before the effect. The program is whole; what it is handed is not.
 */
export const BUILDS = ["fencing", "reservation", "intent"] as const;
export type Build = (typeof BUILDS)[number];

export { TaggableCloud, tagsLate } from "./late-tags.ts";

/** The tree as a process of that build has it. */
export function brokenTree<T extends Tree>(tree: T, build: Build | undefined): T {
  if (build === "fencing") return withoutFences(tree);
  return build === "reservation" ? withoutReservation(tree) : tree;
}
