import * as original from "@nodeyard/tree";
import { EffectNames } from "./effects.ts";
import { recordCore } from "./record.ts";
import { perform } from "./trigger.ts";

export * from "@nodeyard/tree";

// Exports of this module take precedence over those that it re-exports.
export const connectZooKeeperTree: typeof original.connectZooKeeperTree = async (options) =>
  mined(await original.connectZooKeeperTree(options));

export const openEmbeddedTree: typeof original.openEmbeddedTree = async (options) => {
  const tree = await original.openEmbeddedTree(options);
  recordCore(tree.core);
  return mined(tree);
};

/** The same tree, with the points of the kill plan around its writes. */
function mined<T extends original.Tree>(tree: T): T {
  const names = new EffectNames();
  const writes: Partial<original.Tree> = {
    create: (path, data = new Uint8Array(0), options) =>
      perform(names.of([{ op: "create", path, data }]), () => tree.create(path, data, options)),
    set: (path, data, options) =>
      perform(names.of([{ op: "set", path, data }]), () => tree.set(path, data, options)),
    delete: (path, options) => perform(names.of([{ op: "delete", path }]), () => tree.delete(path, options)),
    commit: (ops, options) => perform(names.of(ops), () => tree.commit(ops, options)),
  };
  return new Proxy(tree, {
    get(target, name) {
      const own = writes[name as keyof original.Tree];
      if (own !== undefined) return own;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
