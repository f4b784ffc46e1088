import { NoNode } from "../errors.ts";
import type { MultiReadResult, OpOptions, ZooKeeperClient } from "../types.ts";
import { type Contender, sortContenders } from "./contenders.ts";

/** A contender and what its znode says. */
export interface ContenderDetails extends Contender {
  readonly identifier: string;
  /** Session it ends with; 0n: none, it is persistent. */
  readonly owner: bigint;
  /** When it entered the line, by the server's clock, milliseconds since the epoch. */
  readonly since: number;
}

/** Names below `parent` that stand in line, holder first; empty when there is no lock parent. Creates nothing. */
export async function listContenders(
  client: ZooKeeperClient,
  parent: string,
  options: OpOptions = {},
): Promise<Contender[]> {
  try {
    return sortContenders((await client.children(parent, options)).children);
  } catch (error) {
    if (error instanceof NoNode) return [];
    throw error;
  }
}

const PER_MULTI = 100;

/** Like `listContenders`, with identifiers and owners; who left between the two reads is left out. */
export async function inspectLock(
  client: ZooKeeperClient,
  parent: string,
  options: OpOptions = {},
): Promise<ContenderDetails[]> {
  const line = await listContenders(client, parent, options);
  const reads: Promise<MultiReadResult[]>[] = [];
  for (let at = 0; at < line.length; at += PER_MULTI) {
    const ops = line
      .slice(at, at + PER_MULTI)
      .map(({ name }) => ({ op: "get", path: `${parent}/${name}` }) as const);
    reads.push(client.multiRead(ops, options));
  }
  const results = (await Promise.all(reads)).flat();
  const decoder = new TextDecoder();
  return line.flatMap((contender, index) => {
    const result = results[index];
    if (result?.op === "get") {
      const { data, stat } = result;
      return [
        { ...contender, identifier: decoder.decode(data), owner: stat.ephemeralOwner, since: stat.ctime },
      ];
    }
    if (result?.op === "error" && !(result.error instanceof NoNode)) throw result.error;
    return [];
  });
}
