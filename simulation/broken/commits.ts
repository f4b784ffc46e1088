import { CommitFailed, type Op, type OpResult, type Tree } from "@nodeyard/tree";

/** The same tree, whose writes are changed on their way: undefined drops an operation, whose result is then made up. */
export function changedWrites<T extends Tree>(tree: T, change: (op: Op) => Op | undefined): T {
  const writes: Partial<Tree> = {
    set: (path, data, options) => {
      const { version } = change({ op: "set", path, data, ...options }) as { version?: number };
      return tree.set(path, data, { ...options, version } as typeof options);
    },
    commit: (async (ops: readonly Op[], options?: Parameters<Tree["commit"]>[1]) => {
      const changed = ops.map(change);
      const sent = changed.filter((op) => op !== undefined);
      const places = changed.flatMap((op, index) => (op === undefined ? [] : [index]));
      const results: OpResult[] = ops.map(() => ({ op: "check" }));
      try {
        const answered = await tree.commit(sent, options);
        for (const [at, index] of places.entries()) results[index] = answered[at]!;
        return results;
      } catch (error) {
        throw error instanceof CommitFailed ? new CommitFailed(places[error.index]!, error.reason) : error;
      }
    }) as Tree["commit"],
  };
  return new Proxy(tree, {
    get(target, name) {
      const own = writes[name as keyof Tree];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
