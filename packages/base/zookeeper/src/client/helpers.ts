import { BadArguments, NodeExists, NoNode, NotEmpty, type ZooKeeperError } from "../errors.ts";
import { parentOf } from "../paths.ts";
import type { Children, CreateOptions, OpOptions, VersionOptions } from "../types.ts";
import type { Acl } from "../wire/messages.ts";

/** The part of a client that `ensurePath` needs. */
interface Creator {
  create(path: string, data?: Uint8Array, options?: CreateOptions): Promise<unknown>;
  exists(path: string, options?: OpOptions): Promise<unknown>;
}

/** The part of a client that `deleteRecursive` needs. */
interface Deleter {
  children(path: string, options?: OpOptions): Promise<Children>;
  delete(path: string, options?: VersionOptions): Promise<void>;
}

/** Rounds of `deleteRecursive`. Other clients can create children meanwhile; without a bound the deletion could run for ever. */
const DELETE_ROUNDS = 10;
/** Requests per batch: enough to fill the pipeline, and a bound on what one deletion holds in memory. */
const AT_ONCE = 256;

/** Creates the missing znodes of a path, from the top down. When only the last one is missing, it costs two requests. */
export async function ensurePath(
  client: Creator,
  path: string,
  options: OpOptions & { readonly acl?: readonly Acl[] } = {},
): Promise<void> {
  if (path === "/" || (await client.exists(path, options)) !== undefined) return;
  const parent = parentOf(path);
  try {
    await client.create(path, undefined, options);
  } catch (error) {
    // Another client was faster, which is what was wanted.
    if (error instanceof NodeExists) return;
    if (!(error instanceof NoNode) || parent === undefined) throw error;
    await ensurePath(client, parent, options);
    await client.create(path, undefined, options).catch(ignore(NodeExists));
  }
}

/** Deletes `path` and everything below it, leaves first, because ZooKeeper refuses to delete a znode that has children. */
export async function deleteRecursive(client: Deleter, path: string, options: OpOptions = {}): Promise<void> {
  if (path === "/") throw new BadArguments("the root cannot be deleted", { op: "deleteRecursive", path });
  for (let round = 1; ; round++) {
    // Most znodes are leaves: delete first, and list children only when the server answers NotEmpty.
    try {
      await client.delete(path, options);
      return;
    } catch (error) {
      if (error instanceof NoNode) return;
      if (!(error instanceof NotEmpty) || round === DELETE_ROUNDS) throw error;
    }
    const below = await descendants(client, path, options);
    // The server handles requests of one session in order, so one batch may hold children and, after them, their parent.
    await inBatches(below.reverse(), (one) => client.delete(one, options).catch(ignore(NoNode, NotEmpty)));
  }
}

/** Everything below a path, parents before their children. */
async function descendants(client: Deleter, path: string, options: OpOptions): Promise<string[]> {
  const found: string[] = [];
  let level = [path];
  while (level.length > 0) {
    const next: string[] = [];
    await inBatches(level, async (parent) => {
      for (const child of await childrenOf(client, parent, options)) next.push(`${parent}/${child}`);
    });
    for (const one of next) found.push(one);
    level = next;
  }
  return found;
}

/** Runs `work` for all paths, AT_ONCE at a time and in order. Rejects with the first error, when its batch was sent already. */
async function inBatches(paths: readonly string[], work: (path: string) => Promise<void>): Promise<void> {
  for (let i = 0; i < paths.length; i += AT_ONCE) await Promise.all(paths.slice(i, i + AT_ONCE).map(work));
}

/** None, when another client has deleted the znode meanwhile. */
async function childrenOf(client: Deleter, path: string, options: OpOptions): Promise<readonly string[]> {
  try {
    return (await client.children(path, options)).children;
  } catch (error) {
    if (error instanceof NoNode) return [];
    throw error;
  }
}

/** A handler that takes errors of these classes for success. */
function ignore(...kinds: (new (...args: never[]) => ZooKeeperError)[]): (error: unknown) => void {
  return (error) => {
    if (!kinds.some((kind) => error instanceof kind)) throw error;
  };
}
