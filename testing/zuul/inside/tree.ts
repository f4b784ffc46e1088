import * as original from "@nodeyard/tree";
import { write } from "./writes.ts";

export * from "@nodeyard/tree";

const WRITES: ReadonlySet<PropertyKey> = new Set(["create", "set", "delete", "commit"]);

// Exports of this module take precedence over those that it re-exports.
export const connectZooKeeperTree: typeof original.connectZooKeeperTree = async (options) => {
  const tree = await original.connectZooKeeperTree(options);
  return new Proxy(tree, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      if (!WRITES.has(name)) return value.bind(target);
      return (...args: unknown[]) =>
        write(`${String(name)} ${JSON.stringify(args[0])?.slice(0, 120)}`, () => value.apply(target, args));
    },
  });
};
