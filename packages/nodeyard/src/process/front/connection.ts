import type { Tree } from "@nodeyard/tree";
import type { Readiness } from "../../api/index.ts";
import type { Machine } from "../../machine/index.ts";

/** Whether the process may act on the tree now. */
export function connection({ tree, machine }: { readonly tree: Tree; readonly machine: Machine }): Readiness {
  const { state, trustedUntil } = tree.session();
  if (state !== "connected") return { ready: false, why: `the connection to the tree is ${state}` };
  const trusted = machine.clock.monotonic() < trustedUntil;
  return { ready: trusted, why: trusted ? "" : "the tree has not answered for too long" };
}
