import { type Clock, type Random, sleep } from "@nodeyard/runtime";
import { type MemoryTree, type Tree, TreeError } from "@nodeyard/tree";

type Create = Tree["create"];

/** Calls that kazoo's retry repeats, whether or not the first was carried out. */
const REPEATED: ReadonlySet<string | symbol> = new Set(["get", "stat", "children", "set", "delete", "sync"]);
/** Pause between two attempts, at most, milliseconds. */
const PAUSE_MS = 200;

export function isLost(error: unknown): error is TreeError {
  return (
    error instanceof TreeError &&
    (error.code === "tree.connection_lost" || error.code === "tree.session_expired")
  );
}

/** Repeats a call while its connection breaks, as a person or kazoo's retry does. */
export async function again<T>(clock: Clock, random: Random, call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!isLost(error)) throw error;
      await sleep(clock, random.float() * PAUSE_MS);
    }
  }
}

/**
 * A tree as clients of kazoo have it: calls that the connection lost are repeated. Before an ephemeral sequential create is repeated, the
 * first one is looked for, as kazoo's lock does by its name. Any other sequential create is not repeated: the two could not be distinguished.
 */
export function retried(tree: MemoryTree, clock: Clock, random: Random): MemoryTree {
  const create: Create = (path, data, options = {}) => {
    if (options.sequential !== true) return again(clock, random, () => tree.create(path, data, options));
    if (options.ephemeral !== true) return tree.create(path, data, options);
    let lost = false;
    return again(clock, random, async () => {
      const found = lost ? await own(tree, path) : undefined;
      lost = true;
      return found ?? tree.create(path, data, options);
    });
  };
  return new Proxy(tree, {
    get(target, name) {
      if (name === "create") return create;
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (!REPEATED.has(name)) return value.bind(target);
      return (...args: unknown[]) =>
        again(clock, random, () => Reflect.apply(value, target, args) as Promise<unknown>);
    },
  });
}

/** What our session created for a sequential path. Unlike kazoo it uses a `sync`: an overlooked contender would stay for hours. */
async function own(tree: Tree, path: string): Promise<Awaited<ReturnType<Create>> | undefined> {
  const parent = path.slice(0, path.lastIndexOf("/"));
  await tree.sync(parent);
  for (const name of await tree.children(parent)) {
    const child = `${parent}/${name}`;
    if (!child.startsWith(path)) continue;
    const stat = await tree.stat(child);
    if (stat?.ephemeralOwner === tree.session().id) return { path: child, stat };
  }
  return undefined;
}
