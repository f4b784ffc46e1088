import {
  borneSince,
  type ComponentRecord,
  costBetween,
  costOf,
  decodeComponent,
  decodeNode,
  type NodeRecord,
  paths,
  priceOf,
} from "@nodeyard/model";
import { orUndefined, type Tree } from "@nodeyard/tree";
import { readAll } from "../listing.ts";

/** A pool that is registered by any launcher, of Nodeyard or not. */
export type RegisteredPool = ComponentRecord & { readonly id: string };

/**
 * Pools of all launchers that are registered now. Their records are ephemeral, so that one whose launcher has died goes with its
 * session.
 */
export async function registeredPools(tree: Tree): Promise<readonly RegisteredPool[]> {
  const pools = await readEach(tree, paths.component("pool"), (_, data) => decodeComponent(data));
  return pools.filter((pool): pool is RegisteredPool => pool.id !== null && pool.state !== "stopped");
}

/** Hosts of all builders that run, of Nodeyard or not. */
export async function registeredBuilders(tree: Tree): Promise<readonly string[]> {
  const builders = await readEach(tree, paths.component("builder"), (_, data) => decodeComponent(data));
  return [...new Set(builders.map(({ hostname }) => hostname))].sort();
}

/** Nodes that are allocated to a request. Reads the records of all nodes: ZooKeeper has no index. */
export async function nodesOf(tree: Tree, request: string): Promise<readonly NodeRecord[]> {
  const nodes = await readEach(tree, paths.nodes, decodeNode);
  return nodes.filter(({ allocatedTo }) => allocatedTo === request);
}

/**
 * The identifier that the holder of a lock has stored, else the name of its contender; null when the lock is free. The lowest
 * number holds it (docs/contract/locks.md, "The recipe").
 */
export async function lockHolder(tree: Tree, parent: string): Promise<string | null> {
  const names = (await orUndefined(tree.children(parent))) ?? [];
  const [first] = [...names].sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1));
  if (first === undefined) return null;
  const found = await orUndefined(tree.get(`${parent}/${first}`));
  const text = found === undefined ? "" : Buffer.from(found.data).toString();
  return text === "" ? first : text;
}

/** Every readable record beneath `root`: listings report the others, which stop nothing. */
export async function readEach<T>(
  tree: Tree,
  root: string,
  decode: (id: string, data: Uint8Array) => T,
): Promise<readonly T[]> {
  return (await readAll(tree, root, decode)).items;
}

/** What the nodes of a request cost an hour and have cost it so far, by currency; nothing where no price is known. */
export function costFacts(
  nodes: readonly NodeRecord[],
  now: number,
): { readonly cost?: readonly { per_hour: number; currency: string; so_far: number }[] } {
  const sums = new Map<string, { perHour: number; soFar: number }>();
  for (const record of nodes) {
    const price = priceOf(record);
    if (price === undefined) continue;
    const sum = sums.get(price.currency) ?? { perHour: 0, soFar: 0 };
    sum.perHour += price.perHour;
    sum.soFar += costBetween(price, borneSince(record) ?? now, now);
    sums.set(price.currency, sum);
  }
  const digits = (value: number) => Number(value.toPrecision(4));
  const cost = [...sums].map(([currency, { perHour, soFar }]) => ({
    ...{ per_hour: digits(perHour), currency, so_far: digits(soFar) },
  }));
  return cost.length === 0 ? {} : { cost };
}

/** A node in a list of them; keys are part of `--json`. */
export function nodeFacts(record: NodeRecord): Readonly<Record<string, unknown>> {
  const { id, state, type, provider, pool } = record;
  const price = priceOf(record);
  return { id, state, label: type.join(","), provider, pool, ...(price && { cost: costOf(price) }) };
}
