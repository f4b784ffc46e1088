import type { ZooKeeper } from "@nodeyard/zookeeper";
import { type Fulfilled, NODES, REQUESTS, setState } from "./requester.ts";

/**
 * The life of a nodeset in a Zuul executor: lock the nodes, delete the request, set `in-use`, then `used`, unlock. Rejects if a node is not
 * ours or another client holds it.
 */
export async function useNodes(client: ZooKeeper, request: Fulfilled): Promise<void> {
  const contenders: string[] = [];
  for (const node of request.nodes) contenders.push(await lock(client, request.id, node));
  await client.delete(`${REQUESTS}/${request.id}`);
  for (const node of request.nodes) await setState(client, node, "in-use");
  for (const node of request.nodes) await setState(client, node, "used");
  for (const contender of contenders) await client.delete(contender);
}

async function lock(client: ZooKeeper, request: string, node: string): Promise<string> {
  const { data } = await client.get(`${NODES}/${node}`);
  const owner: unknown = JSON.parse(data.toString()).allocated_to;
  if (owner !== request) throw new Error(`node ${node} is allocated to ${owner}, not to ${request}`);
  const parent = `${NODES}/${node}/lock`;
  if ((await client.exists(parent)) === undefined) await client.ensurePath(parent);
  const prefix = `${client.random.uuid().replaceAll("-", "")}__lock__`;
  const { path } = await client.create(`${parent}/${prefix}`, undefined, {
    ephemeral: true,
    sequential: true,
  });
  const { children } = await client.children(parent);
  const sequence = (name: string) => name.slice(-10);
  const own = path.slice(parent.length + 1);
  const first = children.reduce((a, b) => (sequence(a) < sequence(b) ? a : b));
  if (first !== own) throw new Error(`node ${node} is held by ${first}`);
  return path;
}
