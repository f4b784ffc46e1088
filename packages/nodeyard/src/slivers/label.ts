import { closed, listOf, type Reader, str } from "@nodeyard/driver";
import { amountKeys, readAmounts, readKeys, readLend } from "@nodeyard/driver-sliver/hosts";
import { IMAGE } from "@nodeyard/sliver-protocol";
import type { SlotIsolation } from "./slot-slivers.ts";

/** Keys of a label that is cut into slivers. */
export const isolationKeys = {
  isolation: str({
    description:
      "What separates slots: `none` gives out the backing node itself to each; `sliver` makes each a sliver on it, whose node must be a sliver host.",
    default: "none",
  }),
  lend: str({
    description:
      "Who may use what a slot leaves of its caps, with `isolation: sliver`: `none`, nobody; `idle`, the busy slots of its backing node, as long as its own node is handed out to nobody.",
    default: "none",
  }),
  sliver: closed(
    {
      ...amountKeys,
      image: str({
        description: "Image of its root, by a name of the machine's or a digest.",
        default: "the machine's",
      }),
      initscript: str("Shell script that runs in each sliver when it starts, as its user."),
      "authorized-keys": listOf(
        str(),
        "Public keys that may log in, without options; needed with `isolation: sliver`.",
      ),
    },
    [],
    "What each slot is given, with `isolation: sliver`.",
  ),
};

/** Undefined: slots are not separated. */
export function readIsolation(from: Reader): SlotIsolation | undefined {
  const kind = from.text("isolation", "none");
  if (kind !== "none" && kind !== "sliver") from.error("isolation", `is ${kind}; write none or sliver`);
  if (kind !== "sliver") {
    for (const key of ["sliver", "lend"])
      if (from.has(key)) from.warn(key, "is without effect; add isolation: sliver");
    return undefined;
  }
  const inner = from.inner("sliver");
  const image = inner.text("image", null);
  if (image !== null && !IMAGE.test(image))
    inner.error("image", `is ${image}; write a name of lower-case letters and digits, or sha256:<digest>`);
  const authorizedKeys = readKeys(inner);
  if (authorizedKeys.length === 0)
    inner.error("authorized-keys", "names nobody who may log in to a slot; write down a public key");
  const rspec = readAmounts(inner);
  const initscript = inner.text("initscript", "");
  return { rspec, image, initscript, authorizedKeys, lends: readLend(from, rspec) };
}
