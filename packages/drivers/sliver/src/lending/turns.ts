import { DriverError, type NodeUse } from "@nodeyard/driver";
import type { Edit, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { isIdle, setBusy, setIdle, turnOf } from "./document.ts";

/** The edit that marks a sliver as idle. */
export function rest(name: string): Edit {
  return (all) => {
    const spec = all.get(name);
    if (spec !== undefined && !isIdle(spec)) all.set(name, setIdle(spec));
  };
}

/**
 * The edit that marks a sliver as busy, in a new turn. Throws DriverError when there is no sliver of that name. When another writer
 * came first, the edit is called again with the newer document; `turn` makes it the same one step forward and not a second one.
 */
export function wake(name: string): Edit {
  let turn: number | undefined;
  return (all) => {
    const spec = all.get(name);
    if (spec === undefined) throw new DriverError("not-found", `sliver ${name} is in no document any more`);
    turn ??= turnOf(spec) + 1;
    if (isIdle(spec) || turnOf(spec) < turn) all.set(name, setBusy(spec));
  };
}

/** Marks a sliver as its node is used. A sliver that was given to a client after it was `seen`, so before the use was read, is left alone. */
export function markUse(
  spec: SliverSpecInput,
  seen: Pick<SliverSpecInput, "generation" | "tags"> | undefined,
  use: NodeUse | undefined,
): SliverSpecInput {
  if (use === "used" && isIdle(spec)) return setBusy(spec);
  const same = seen?.generation === spec.generation && turnOf(seen) === turnOf(spec);
  return use === "unused" && same && !isIdle(spec) ? setIdle(spec) : spec;
}
