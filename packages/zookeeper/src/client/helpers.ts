import { BadArguments, NodeExists, NoNode, NotEmpty, type ZooKeeperError } from "../errors.ts";
import { parentOf } from "../paths.ts";
import type { Children, CreateOptions, OpOptions, VersionOptions } from "../types.ts";
import type { Acl } from "../wire/messages.ts";

interface Creator {
  create(path: string, data?: Uint8Array, options?: CreateOptions): Promise<unknown>;
  exists(path: string, options?: OpOptions): Promise<unknown>;
}

interface Deleter {
  children(path: string, options?: OpOptions): Promise<Children>;
  delete(path: string, options?: VersionOptions): Promise<void>;
}

/** Others may go on creating below what is being deleted; at some point that is theirs to settle. */
const DELETE_ROUNDS = 10;
const AT_ONCE = 256;

/** Creates what is missing of a path, from the top; the usual case, all but the last there, costs one request. */
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
    if (error instanceof NodeExists) return;
    if (!(error instanceof NoNode) || parent === undefined) throw error;
    await ensurePath(client, parent, options);
    await client.create(path, undefined, options).catch(ignore(NodeExists));
  }
}

/** Deletes from the leaves up. */
export async function deleteRecursive(client: Deleter, path: string, options: OpOptions = {}): Promise<void> {
  if (path === "/") throw new BadArguments("the root cannot be deleted", { op: "deleteRecursive", path });
  for (let round = 1; ; round++) {
    // Most znodes are leaves: try first, look for children only when there are some.
    try {
      await client.delete(path, options);
      return;
    } catch (error) {
      if (error instanceof NoNode) return;
      if (!(error instanceof NotEmpty) || round === DELETE_ROUNDS) throw error;
    }
    const below = await descendants(client, path, options);
    // Requests are served in the order of the calls, so a parent may be asked for in the same batch as its children.
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

async function inBatches(paths: readonly string[], work: (path: string) => Promise<void>): Promise<void> {
  for (let i = 0; i < paths.length; i += AT_ONCE) await Promise.all(paths.slice(i, i + AT_ONCE).map(work));
}

async function childrenOf(client: Deleter, path: string, options: OpOptions): Promise<readonly string[]> {
  try {
    return (await client.children(path, options)).children;
  } catch (error) {
    if (error instanceof NoNode) return [];
    throw error;
  }
}

function ignore(...kinds: (new (...args: never[]) => ZooKeeperError)[]): (error: unknown) => void {
  return (error) => {
    if (!kinds.some((kind) => error instanceof kind)) throw error;
  };
}
