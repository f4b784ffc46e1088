import type { CallInfo } from "@nodeyard/tree";
import type { World } from "./world.ts";

export type Call = CallInfo;

/**
 * Does something just before the first write of a launcher that `which` accepts is carried out; `World.other` is quicker than a launcher.
 * Returns whether that has happened. Replaces what the world's launchers lose.
 */
export function before(
  world: World,
  which: (call: Call) => boolean,
  what: (call: Call) => void,
): () => boolean {
  let done = false;
  world.fault = (call) => {
    if (!done && call.kind === "write" && which(call)) {
      done = true;
      what(call);
    }
    return undefined;
  };
  return () => done;
}

/** Of a call or of what the tree has applied. */
export const touches = (path: string) => (write: Pick<Call, "ops">) =>
  write.ops.some((op) => op.path.startsWith(path));
