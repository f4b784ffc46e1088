// Loaded with `--import` into the real program: the connector's tree and its client of the pool are those beside this file, which kill the
// process at a numbered write.
import { registerHooks } from "node:module";

const OURS: ReadonlyMap<string, string> = new Map([
  ["@nodeyard/tree", new URL("./tree.ts", import.meta.url).href],
  ["@nodeyard/client", new URL("./client.ts", import.meta.url).href],
]);

registerHooks({
  resolve(specifier, context, next) {
    const url = OURS.get(specifier);
    if (url === undefined || context.parentURL?.startsWith(new URL(".", import.meta.url).href) === true)
      return next(specifier, context);
    return { url, format: "module-typescript", shortCircuit: true };
  },
});
