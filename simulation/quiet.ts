import { paths, suspendedPatch } from "@nodeyard/model";
import type { Scene } from "./scene.ts";

/** No request, lease or slot is open, and no node is in use or being made. */
export function isQuiet({ check, zuul, cli, cluster, processes, damaged, builders }: Scene): boolean {
  const going = [...check.nodes.values()].some(
    ({ data }) =>
      (data.state !== "ready" && !(data.state === "hold" && data.hold_job === suspendedPatch.holdJob)) ||
      (data.allocated_to ?? null) !== null,
  );
  const leases = cluster.znodes.children("/nodeyard/leases")?.length ?? 0;
  const slots = cluster.znodes.children("/nodeyard/slots")?.length ?? 0;
  const busy =
    zuul.open.size + zuul.holds + cli.open + damaged.open.size + leases + slots + check.requests.size;
  return busy === 0 && !going && builders.quiet && processes.every((each) => each.dead || each.awake);
}

/**
 * The run is quiet, and no node has a contender. An idle node is locked before its record says that it is replaced, and is gone before its
 * replacement is requested.
 */
export function isSettled(scene: Scene): boolean {
  return isQuiet(scene) && contenders(scene).length === 0 && lacking(scene).length === 0;
}

/** Labels with fewer nodes than `min-ready` says. */
export function lacking({
  check,
  config,
}: Scene): readonly { label: string; nodes: number; minReady: number }[] {
  const types = [...check.nodes.values()].map(({ data }) => data.type as string[]);
  return [...config.labels.values()]
    .map(({ name, minReady }) => ({
      label: name,
      nodes: types.filter((labels) => labels.includes(name)).length,
      minReady,
    }))
    .filter(({ nodes, minReady }) => nodes < minReady);
}

/** The contenders of free nodes. One that is being made, in the place of one that had reached its maximum age, is locked by its maker. */
export function contenders({ check, cluster }: Scene): readonly { node: string; names: readonly string[] }[] {
  return [...check.nodes]
    .filter(([, { data }]) => data.state === "ready" && (data.allocated_to ?? null) === null)
    .map(([node]) => ({ node, names: [...(cluster.znodes.children(paths.nodeLock(node)) ?? [])] }))
    .filter(({ names }) => names.length > 0);
}
