import { DriverError } from "@nodeyard/driver";
import type { Edit } from "@nodeyard/sliver-protocol";
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
