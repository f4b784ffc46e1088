// Loaded with `--import` into the real program: everything runs as `nodeyard launcher` and `nodeyard up` compose it, but the
// tree and the fake driver it imports are those beside this file, which kill the process at a named effect.
import { registerHooks } from "node:module";

const OURS: ReadonlyMap<string, string> = new Map([
  ["@nodeyard/tree", new URL("./tree.ts", import.meta.url).href],
  ["@nodeyard/driver-fake", new URL("./driver-fake.ts", import.meta.url).href],
]);

registerHooks({
  resolve(specifier, context, next) {
    const url = OURS.get(specifier);
    if (url === undefined || context.parentURL?.startsWith(new URL(".", import.meta.url).href) === true)
      return next(specifier, context);
    return { url, format: "module-typescript", shortCircuit: true };
  },
});
