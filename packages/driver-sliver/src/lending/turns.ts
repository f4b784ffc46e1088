import { DriverError, type NodeUse } from "@nodeyard/driver";
import type { Edit, SliverSpecInput } from "@nodeyard/sliver-protocol";
import { isIdle, setBusy, setIdle, turnOf } from "./document.ts";

/** It is nobody's. */
export function rest(name: string): Edit {
  return (all) => {
    const spec = all.get(name);
    if (spec !== undefined && !isIdle(spec)) all.set(name, setIdle(spec));
  };
}

/** It is somebody's from now on, in a turn of its own. Throws DriverError when there is none of that name. */
export function wake(name: string): Edit {
  let turn: number | undefined;
  return (all) => {
    const spec = all.get(name);
    if (spec === undefined) throw new DriverError("not-found", `sliver ${name} is in no document any more`);
    turn ??= turnOf(spec) + 1;
    if (isIdle(spec) || turnOf(spec) < turn) all.set(name, setBusy(spec));
  };
}

/** As its node is used; one that was given to somebody since it was `seen`, before its use was asked for, is left alone. */
export function markUse(
  spec: SliverSpecInput,
  seen: Pick<SliverSpecInput, "generation" | "tags"> | undefined,
  use: NodeUse | undefined,
): SliverSpecInput {
  if (use === "used" && isIdle(spec)) return setBusy(spec);
  const same = seen?.generation === spec.generation && turnOf(seen) === turnOf(spec);
  return use === "unused" && same && !isIdle(spec) ? setIdle(spec) : spec;
}
