import { add, type Resources } from "@nodeyard/driver";
import { choose, times } from "./candidates.ts";
import { openZones } from "./offerings.ts";
import { compareFigures, type Figures, together } from "./score.ts";
import type { State } from "./state.ts";
import type { LocalPool, PlannedNode } from "./types.ts";
import { leastLoaded } from "./used.ts";
import type { Waiting } from "./waits.ts";

export const oneInstance: Resources = { instances: 1 };

/** What one node of a label takes in a pool; labels that the driver says nothing of take one instance. */
export function needOf(pool: LocalPool, label: string): Resources {
  return pool.needs.get(label) ?? oneInstance;
}

/** What all these labels take together. */
export function total(pool: LocalPool, labels: readonly string[]): Resources {
  return labels.reduce<Resources>((sum, label) => add(sum, needOf(pool, label)), {});
}

/** Number of times that each label is wanted. */
export function counted(labels: readonly string[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const label of labels) counts.set(label, (counts.get(label) ?? 0) + 1);
  return counts;
}

/** The nodes that a request would get, before anyone asked whether there is room for those to be launched. */
export interface Nodeset {
  readonly nodes: readonly PlannedNode[];
  /** Of everything in it that has a zone; null: the cloud chooses. */
  readonly zone: string | null;
  /** Labels of the nodes to be launched, in the order of the request; one that is wanted twice stands twice. */
  readonly launching: readonly string[];
  /** What the launches take. */
  readonly need: Resources;
}

/**
 * Ready nodes first, oldest first, and launches for the rest, in the order of `node_types`. As with the old launcher the
 * first reused node that has a zone decides it for all (docs/contract/launcher.md, "Nodesets"); without one, a zone is chosen for what is
 * launched.
 */
export function chooseNodes(
  state: State,
  policy: LocalPool,
  waiting: Waiting,
  reuse = waiting.record.reuse,
): Nodeset {
  const { record } = waiting;
  const taken = new Set<string>();
  const nodes: PlannedNode[] = [];
  const launching: string[] = [];
  let zone: string | null = null;
  let need: Resources = {};
  for (const label of record.nodeTypes) {
    const idle: string | undefined = reuse ? findIdle(state, policy, label, zone, taken) : undefined;
    if (idle !== undefined) {
      taken.add(idle);
      zone ??= state.nodes.get(idle)?.record.az ?? null;
      nodes.push({ label, reuse: idle });
      continue;
    }
    const each = needOf(policy, label);
    need = add(need, each);
    launching.push(label);
    nodes.push({ label, launch: each });
  }
  return { nodes, zone, launching, need };
}

/**
 * The same with its zone chosen, among those whose offerings are open: a zone without room is not. Ready nodes in a zone
 * that is closed are left for others, because the nodeset goes to another one as a whole. Undefined: no offering that is open can ever be
 * had for all nodes.
 */
export function inOneZone(
  state: State,
  steady: number,
  policy: LocalPool,
  waiting: Waiting,
  set: Nodeset,
): Nodeset | undefined {
  const open = openZones(state, steady, policy, set.launching, waiting.id);
  const keeps = set.zone !== null && (open[0] === null || open.includes(set.zone));
  const whole = keeps || set.zone === null ? set : chooseNodes(state, policy, waiting, false);
  if (whole.launching.some((label) => policy.offerings?.has(label)))
    return bestOffered(state, steady, policy, waiting, whole, keeps ? [set.zone] : open);
  return keeps ? set : { ...whole, zone: leastLoaded(state, policy, open) };
}

/** The zone in which the nodes of labels with several offerings are bought best, and what each of these labels is bought as. */
function bestOffered(
  state: State,
  steady: number,
  policy: LocalPool,
  { id: request, record }: Waiting,
  set: Nodeset,
  zones: readonly (string | null)[],
): Nodeset | undefined {
  const counts = counted(set.launching);
  let best: { readonly set: Nodeset; readonly figures: Figures } | undefined;
  for (const zone of zones) {
    const chosen = new Map<string, NonNullable<ReturnType<typeof choose>>>();
    const fixed = set.launching.filter((label) => !policy.offerings!.has(label));
    let need = total(policy, fixed);
    for (const [label, count] of counts) {
      if (!policy.offerings!.has(label)) continue;
      const wanted = { request, tenant: record.tenantName, count, beside: need };
      const found = choose(state, steady, policy, label, zone, wanted);
      if (found === undefined) break;
      chosen.set(label, found);
      need = add(need, times(found.candidate.offering.need, count));
    }
    if (chosen.size + new Set(fixed).size < counts.size) continue;
    const figures = together([...chosen.values()].map((one) => one.figures));
    if (best !== undefined && compareFigures(figures, best.figures) >= 0) continue;
    const nodes = set.nodes.map((node): PlannedNode => {
      const offering = "reuse" in node ? undefined : chosen.get(node.label)?.candidate.offering;
      return offering === undefined ? node : { ...node, launch: offering.need, type: offering.type };
    });
    best = { set: { ...set, nodes, need, zone }, figures };
  }
  return best?.set;
}

/** The oldest idle node of a label that this nodeset does not have yet; with a zone only of that zone. */
function findIdle(
  { idle }: State,
  { key }: LocalPool,
  label: string,
  zone: string | null,
  taken: ReadonlySet<string>,
): string | undefined {
  const ids = zone === null ? idle.of(key, label) : idle.inZone(key, label, zone);
  return ids.find((id) => !taken.has(id));
}
