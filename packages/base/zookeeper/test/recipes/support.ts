import { setTimeout as sleep } from "node:timers/promises";
import { patient } from "../../../../../testing/patience.ts";
import {
  connect as connectClient,
  sortContenders,
  type ZooKeeper,
  type ZooKeeperOptions,
} from "../../src/index.ts";

const clients: ZooKeeper[] = [];

/** A connected client that `closeAll` closes. */
export async function connect(
  to: { readonly host: string; readonly port: number },
  options: ZooKeeperOptions = {},
): Promise<ZooKeeper> {
  const client = await connectClient(`${to.host}:${to.port}`, options);
  clients.push(client);
  return client;
}

export async function closeAll(): Promise<void> {
  await Promise.all(clients.splice(0).map((client) => client.close()));
}

const PATIENCE_MS = patient(60_000);
/** Of a session that a test ends, milliseconds: what stands still for less than this does not end it before. */
export const SHORT_SESSION_MS = 4_000;

/** Waits until `probe` answers with something truthy; how long that takes proves nothing, that it comes does. */
export async function until<T>(what: string, probe: () => T | Promise<T>): Promise<NonNullable<T>> {
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    const found = await probe();
    if (found) return found;
    await sleep(5);
  }
  throw new Error(`waited in vain for: ${what}`);
}

/** A path that no other test uses. */
let last = 0;
export async function freshPath(client: ZooKeeper): Promise<string> {
  const path = `/t${++last}-${client.session.id.toString(16)}`;
  await client.create(path);
  return path;
}

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
