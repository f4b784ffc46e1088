import { createRequire } from "node:module";

/** Loads an ES module by its name within the call; Node does that for modules without a top-level await. */
export const loadModule: (specifier: string) => unknown = createRequire(import.meta.url);
