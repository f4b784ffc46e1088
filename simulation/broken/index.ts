import type { Tree } from "@nodeyard/tree";
import { withoutClaims } from "./claims.ts";
import { withoutFences } from "./fencing.ts";
import { withoutReservation } from "./reservation.ts";

/**
 * Builds that lack what keeps the rules, to show that the checks find it: without fences, without the reservation of limits
 * among launchers (of all, of tenants only), without the intent before the effect, without the claim of a slot. The program is whole; what it is handed is not.
 */
export const BUILDS = ["fencing", "reservation", "tenants", "intent", "slots"] as const;
export type Build = (typeof BUILDS)[number];

export { TaggableCloud, tagsLate } from "./late-tags.ts";

/** The tree as a process of that build has it. */
export function brokenTree<T extends Tree>(tree: T, build: Build | undefined): T {
  switch (build) {
    case "fencing":
      return withoutFences(tree);
    case "reservation":
      return withoutReservation(tree);
    case "tenants":
      return withoutReservation(tree, "/nodeyard/limits/@tenant/");
    case "slots":
      return withoutClaims(tree);
    default:
      return tree;
  }
}
