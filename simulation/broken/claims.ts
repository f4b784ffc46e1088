import type { Op, Tree } from "@nodeyard/tree";

const CLAIM = /^\/nodeyard\/slots\/\d+\/\d+$/;

/** A slot that was chosen is taken from whoever has it by now. */
export function withoutClaims<T extends Tree>(tree: T): T {
  const commit = async (ops: readonly Op[], options?: Parameters<Tree["commit"]>[1]) => {
    const claim = ops.find((op) => op.op === "create" && CLAIM.test(op.path));
    if (claim !== undefined) await tree.delete(claim.path).catch(() => {});
    return tree.commit(ops, options);
  };
  return new Proxy(tree, {
    get(target, name) {
      if (name === "commit") return commit;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
