import { choice, type Entry, inner, type Reader, section, texts, type Values } from "@nodeyard/driver";
import { readKeys, readLend, sliverKeys } from "@nodeyard/driver-sliver/hosts";
import type { SlotIsolation } from "./slot-slivers.ts";

/** Keys of a label that is cut into slivers. */
export const isolationTable = {
  isolation: choice(
    "What separates slots: `none` gives out the backing node itself to each; `sliver` makes each a sliver on it, whose node must be a sliver host.",
    ["none", "sliver"],
  ),
  lend: choice(
    "Who may use what a slot leaves of its caps, with `isolation: sliver`: `none`, nobody; `idle`, the busy slots of its backing node, as long as its own node is handed out to nobody.",
    ["none", "idle"],
  ).when(isSeparated),
  sliver: inner(
    section({
      ...sliverKeys,
      "authorized-keys": texts(
        "Public keys that may log in, without options; needed with `isolation: sliver`.",
      ).map(readKeys),
    }),
    "What each slot is given, with `isolation: sliver`.",
  ).when(isSeparated),
};

/** Undefined: slots are not separated. */
export function isolationOf({
  at,
  lend,
  sliver,
}: Entry<Values<typeof isolationTable>>): SlotIsolation | undefined {
  if (sliver === undefined || lend === undefined) {
    for (const key of ["sliver", "lend"])
      if (at.has(key)) at.warn(key, "is without effect; add isolation: sliver");
    return undefined;
  }
  if (sliver.authorizedKeys.length === 0)
    at.inner("sliver").error(
      "authorized-keys",
      "names nobody who may log in to a slot; write down a public key",
    );
  return { ...sliver, lends: readLend(lend, sliver.rspec, at) };
}

function isSeparated({ raw }: Reader): boolean {
  return raw.isolation === "sliver";
}
