import { add, type Resources } from "@nodeyard/driver";
import { partOf, type RequestRecord } from "@nodeyard/model";
import { type Chosen, candidatesOf, choose, isOpen, type Wanted } from "./candidates.ts";
import { counted, leastOf, needOf, times, total } from "./needs.ts";
import { openZones, zonesOf } from "./offerings.ts";
import { zonesFor } from "./pairing.ts";
import { mayHave } from "./reuse.ts";
import { compareFigures, type Figures, together } from "./score.ts";
import { freeNodes, type State } from "./state.ts";
import type { LocalPool, PlannedNode } from "./types.ts";
import { leastLoaded } from "./used.ts";
import type { Waiting } from "./waits.ts";

/** Choices of an offering that one plan makes for a zone, at most. A nodeset for which more are needed counts as one that cannot be had. */
const LOOKS = 1_000;

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
    const idle: string | undefined = reuse ? findIdle(state, policy, label, zone, taken, record) : undefined;
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
 * that is closed are left for others, because the nodeset goes to another one as a whole. Undefined: no zone is open for all of it, or no
 * offering that is open can ever be had for all nodes.
 */
export function inOneZone(
  state: State,
  steady: number,
  policy: LocalPool,
  waiting: Waiting,
  set: Nodeset,
): Nodeset | undefined {
  const open = openZones(state, steady, policy, set.launching, waiting.id);
  if (set.zone !== null && (open[0] === null || open.includes(set.zone))) {
    if (!isOffered(policy, set)) return set;
    const kept = bestOffered(state, steady, policy, waiting, set, [set.zone]);
    if (kept !== undefined) return kept;
  }
  const whole = set.zone === null ? set : chooseNodes(state, policy, waiting, false);
  const zones = whole === set ? open : openZones(state, steady, policy, whole.launching, waiting.id);
  if (isOffered(policy, whole)) return bestOffered(state, steady, policy, waiting, whole, zones);
  return zones.length === 0 ? undefined : { ...whole, zone: leastLoaded(state, policy, zones) };
}

/** Whether something that it launches is a label with several offerings. */
function isOffered({ offerings }: LocalPool, { launching }: Nodeset): boolean {
  return offerings !== undefined && launching.some((label) => offerings.has(label));
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
  const fixed = set.launching.filter((label) => !policy.offerings!.has(label));
  const offered = counted(set.launching.filter((label) => policy.offerings!.has(label)));
  const ready = readyOf(policy, set);
  const wanted = { request, tenant: record.tenantName, ready };
  let best: { readonly set: Nodeset; readonly figures: Figures } | undefined;
  for (const zone of zones) {
    const chosen = chooseEach(
      state,
      steady,
      policy,
      zone,
      { ...wanted, looks: { left: LOOKS } },
      [...offered],
      total(policy, fixed),
    );
    if (chosen === undefined) continue;
    const figures = together([...chosen.values()].map((one) => one.figures));
    if (best !== undefined && compareFigures(figures, best.figures) >= 0) continue;
    const nodes = set.nodes.map((node): PlannedNode => {
      const offering = "reuse" in node ? undefined : chosen.get(node.label)?.candidate.offering;
      return offering === undefined ? node : { ...node, launch: offering.need, type: offering.type };
    });
    const need = nodes.reduce<Resources>((sum, one) => ("reuse" in one ? sum : add(sum, one.launch)), {});
    best = { set: { ...set, nodes, need, zone }, figures };
  }
  return best?.set;
}

/**
 * What the nodes of each label are bought as in one zone, beside what the request launches otherwise: each as the best that leaves enough
 * for the labels after it. When nothing can be had for a later one after all, the one before it takes its next best, within `looks`: the
 * ways to combine offerings grow with the power of the labels.
 */
function chooseEach(
  state: State,
  steady: number,
  policy: LocalPool,
  zone: string | null,
  wanted: Pick<Wanted, "request" | "tenant" | "ready"> & { readonly looks: { left: number } },
  [first, ...others]: readonly (readonly [label: string, count: number])[],
  need: Resources,
): Map<string, Chosen> | undefined {
  if (first === undefined) return new Map();
  const [label, count] = first;
  const beside = others.reduce((sum, [other, much]) => add(sum, times(needOf(policy, other), much)), need);
  const without: string[] = [];
  while (wanted.looks.left-- > 0) {
    const found = choose(state, steady, policy, label, zone, { ...wanted, count, beside }, without);
    if (found === undefined) return undefined;
    const { offering } = found.candidate;
    const all = add(need, times(offering.need, count));
    const chosen = chooseEach(state, steady, policy, zone, wanted, others, all);
    if (chosen !== undefined) return chosen.set(label, found);
    without.push(offering.type);
  }
  return undefined;
}

/** What the ready nodes of a nodeset take. */
export function readyOf(policy: LocalPool, { nodes }: Nodeset): Resources {
  return total(
    policy,
    nodes.flatMap((node) => ("reuse" in node ? [node.label] : [])),
  );
}

/** The least that a nodeset takes as what is open now, its ready nodes included. */
export function leastOpen(
  state: State,
  steady: number,
  policy: LocalPool,
  { id }: Waiting,
  set: Nodeset,
): Resources {
  const zones = zonesOf(policy, set.launching);
  return set.launching.reduce(
    (sum, label) => {
      const candidates = zones.flatMap((az) => candidatesOf(policy, label, az) ?? []);
      const open = candidates.filter((one) => isOpen(state, steady, one, id));
      return add(sum, leastOf(open.map(({ offering }) => offering.need)) ?? needOf(policy, label));
    },
    readyOf(policy, set),
  );
}

/** The oldest free node of a label that the request may have and this nodeset does not have yet; with a zone only of that zone. */
function findIdle(
  state: State,
  pool: LocalPool,
  label: string,
  zone: string | null,
  taken: ReadonlySet<string>,
  request: RequestRecord,
): string | undefined {
  const places = zonesFor(partOf(request)?.places, pool);
  // What runs is there at once; what is suspended, sooner than a launch.
  for (const index of freeNodes(state)) {
    const ids = zone === null ? index.of(pool.key, label) : index.inZone(pool.key, label, zone);
    const isForIt = (id: string) =>
      index !== state.kept || mayHave(state.nodes.get(id)!.record, request, false);
    const isThere = (id: string) => places == null || places.includes(state.nodes.get(id)!.record.az ?? "");
    const found = ids.find((id) => !taken.has(id) && isForIt(id) && isThere(id));
    if (found !== undefined) return found;
  }
  return undefined;
}
