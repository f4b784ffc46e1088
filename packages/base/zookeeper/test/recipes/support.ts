import { sortContenders, type ZooKeeper } from "../../src/index.ts";

export {
  client as connect,
  closeClients as closeAll,
  freshPath,
  SHORT_SESSION_MS,
  serverHere,
  until,
} from "../support.ts";

/** Names below a path, sorted; empty when it does not exist. */
export async function namesBelow(client: ZooKeeper, path: string): Promise<string[]> {
  if ((await client.exists(path)) === undefined) return [];
  return [...(await client.children(path)).children].sort();
}

/** The line of a lock, holder first, with what the contenders say. */
export async function inspectLock(
  client: ZooKeeper,
  parent: string,
): Promise<{ readonly path: string; readonly identifier: string; readonly owner: bigint }[]> {
  const line = sortContenders(await namesBelow(client, parent));
  return Promise.all(
    line.map(async (name) => {
      const { data, stat } = await client.get(`${parent}/${name}`);
      return { path: `${parent}/${name}`, identifier: data.toString(), owner: stat.ephemeralOwner };
    }),
  );
}
