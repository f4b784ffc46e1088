import { paths } from "@nodeyard/model";
import type { Scene } from "./scene.ts";

/** No request, lease or slot is open, and nobody has a node or makes one. */
export function isQuiet({ check, zuul, cli, cluster, processes, damaged, builders }: Scene): boolean {
  const going = [...check.nodes.values()].some(
    ({ data }) => data.state !== "ready" || (data.allocated_to ?? null) !== null,
  );
  const leases = cluster.znodes.children("/nodeyard/leases")?.length ?? 0;
  const slots = cluster.znodes.children("/nodeyard/slots")?.length ?? 0;
  const busy =
    zuul.open.size + zuul.holds + cli.open + damaged.open.size + leases + slots + check.requests.size;
  return busy === 0 && !going && builders.quiet && processes.every((each) => each.dead || each.awake);
}

/**
 * All is quiet, and nobody stands in a node's line: an idle node is locked before its record tells that it is replaced, and has gone
 * before its replacement is asked for.
 */
export function isSettled(scene: Scene): boolean {
  return isQuiet(scene) && contenders(scene).length === 0 && lacking(scene).length === 0;
}

/** Labels of which fewer nodes are there than `min-ready` says. */
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

/** Who stands in the lines of nodes. */
export function contenders({ check, cluster }: Scene): readonly { node: string; names: readonly string[] }[] {
  return [...check.nodes.keys()]
    .map((node) => ({ node, names: [...(cluster.znodes.children(paths.nodeLock(node)) ?? [])] }))
    .filter(({ names }) => names.length > 0);
}
