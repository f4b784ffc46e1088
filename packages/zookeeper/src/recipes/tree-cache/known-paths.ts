import type { CachedZnode } from "./types.ts";

/** Parent of an absolute path; the parent of "/" is "". */
export function parentOf(path: string): string {
  if (path === "/") return "";
  const slash = path.lastIndexOf("/");
  return slash === 0 ? "/" : path.slice(0, slash);
}

export function childOf(parent: string, name: string): string {
  return parent === "/" ? `/${name}` : `${parent}/${name}`;
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

const NOTHING: ReadonlySet<string> = new Set();

/** What was reported of a subtree, with an index of children that includes the paths in between. */
export class KnownPaths {
  readonly #root: string;
  readonly #known = new Map<string, CachedZnode>();
  readonly #children = new Map<string, Set<string>>();

  constructor(root: string) {
    this.#root = root;
  }

  get size(): number {
    return this.#known.size;
  }

  get(path: string): CachedZnode | undefined {
    return this.#known.get(path);
  }

  children(path: string): ReadonlySet<string> {
    return this.#children.get(path) ?? NOTHING;
  }

  entries(): IterableIterator<[string, CachedZnode]> {
    return this.#known.entries();
  }

  set(path: string, znode: CachedZnode): void {
    this.#known.set(path, znode);
    this.#link(path);
  }

  /** Forgets the path and all below it; returns what was known of them, deepest first. */
  removeTree(path: string): string[] {
    const removed: string[] = [];
    this.#collect(path, removed);
    this.#unlink(path);
    return removed;
  }

  #collect(path: string, removed: string[]): void {
    for (const name of this.children(path)) this.#collect(childOf(path, name), removed);
    this.#children.delete(path);
    if (this.#known.delete(path)) removed.push(path);
  }

  /** Makes the path and those between it and the root children of their parents. */
  #link(path: string): void {
    let below = path;
    while (below !== this.#root) {
      const parent = parentOf(below);
      let names = this.#children.get(parent);
      const isNew = names === undefined;
      if (names === undefined) {
        names = new Set();
        this.#children.set(parent, names);
      }
      names.add(nameOf(below));
      if (!isNew) return;
      below = parent;
    }
  }

  /** Takes the path out of its parent, and the parent too when nothing is left that it leads to. */
  #unlink(path: string): void {
    let below = path;
    while (below !== this.#root) {
      const parent = parentOf(below);
      const names = this.#children.get(parent);
      names?.delete(nameOf(below));
      if (names !== undefined && names.size > 0) return;
      this.#children.delete(parent);
      if (this.#known.has(parent)) return;
      below = parent;
    }
  }
}
