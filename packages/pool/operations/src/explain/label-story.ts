import { decodeNode, decodeRequest, paths } from "@nodeyard/model";
import type { OperationHandles } from "../handles.ts";
import { readStandings } from "../standings.ts";
import { labelCodes } from "./codes.ts";
import { fromPool, fromTree, type QueryMembers, replyParts } from "./member-replies.ts";
import { byNextTry, type PoolLine } from "./pool-line.ts";
import { nextOf } from "./request-story.ts";
import { hostsOf, withStanding } from "./standing-facts.ts";
import type { Story } from "./story.ts";
import { type RegisteredPool, readEach, registeredPools } from "./tree-facts.ts";

/**
 * The explanation of a label: whether a request for it would be served now, by whom, or why not. Undefined when no pool offers
 * the label, and nothing of it is there.
 */
export async function labelStory(
  handles: OperationHandles,
  label: string,
  query: QueryMembers,
): Promise<Story | undefined> {
  const { tree } = handles;
  const [registered, nodes, requests, replies, standings] = await Promise.all([
    registeredPools(tree),
    readEach(tree, paths.nodes, decodeNode),
    readEach(tree, paths.requests, decodeRequest),
    query({ label }),
    readStandings(handles),
  ]);
  const offering = registered.filter(({ supportedLabels }) => supportedLabels.includes(label));
  const parts = replyParts(replies);
  // Pools that do not offer the label are only counted.
  const pools = parts.pools.filter(({ outlook }) => outlook !== "lacks");
  const own = nodes.filter(({ type }) => type.includes(label));
  const wanted = requests.filter(
    ({ nodeTypes, state }) => nodeTypes.includes(label) && (state === "requested" || state === "pending"),
  );
  if (offering.length + pools.length + own.length + wanted.length === 0) return undefined;
  const served = new Set(registered.map(({ providerName }) => providerName));
  const removed = new Set(own.map(({ provider }) => provider).filter((name) => !served.has(name)));
  const situation = withStanding(situationOf(pools, offering), [label], standings);
  return {
    kind: "label",
    id: label,
    state: situation.waits_for === null ? "served" : offering.length === 0 ? "unserved" : "waiting",
    since: null,
    about: {
      offered_by: offering.map(poolFacts),
      pools_without_it: registered.length - offering.length,
      nodes: countBy(own.map(({ state }) => state)),
      requests_open: wanted.length,
      hosts: hostsOf(label, standings),
      // Nodes of providers that no launcher serves stay until a launcher serves the provider again.
      providers_not_served: [...removed].sort(),
    },
    ...situation,
    ...parts,
    pools,
    steps: [],
  };
}

/** What a request for the label would meet: the best pool decides. A pool that can, then the one that can soonest. */
function situationOf(
  pools: readonly PoolLine[],
  offering: readonly RegisteredPool[],
): Pick<Story, "waits_for" | "next"> {
  const can = pools.find(({ outlook }) => outlook === "can");
  if (can !== undefined) {
    const how = can.facts.launches === 0 ? "with a ready node" : "with a launch";
    return { waits_for: null, next: `${can.pool} would serve a request for it at once, ${how}.` };
  }
  // First the wait that ends by itself and soonest; last those that an operator must end.
  const [first] = pools.filter(({ outlook }) => outlook === "waits").sort(byNextTry);
  if (first !== undefined) {
    const wait = fromPool(first);
    return { waits_for: wait, next: nextOf(wait) };
  }
  const because = (code: keyof typeof labelCodes, next: string) => ({
    waits_for: fromTree(code, labelCodes[code]),
    next,
  });
  if (pools.length > 0)
    return because(
      "label.declined",
      "A request for it would fail until the reasons that the pools give are fixed.",
    );
  if (offering.length > 0)
    return because(
      "label.unasked",
      "Their launchers are not Nodeyard's, or do not answer; a request waits for their decision.",
    );
  return because("label.unknown", "A request for it would fail until a pool offers it.");
}

function poolFacts({ id, priority, paused }: RegisteredPool): Readonly<Record<string, unknown>> {
  return { id, priority, paused };
}

/** Counts, by value in order. */
function countBy(values: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const value of [...values].sort()) counts[value] = (counts[value] ?? 0) + 1;
  return counts;
}
