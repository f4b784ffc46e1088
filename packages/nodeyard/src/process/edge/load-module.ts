import { createRequire, registerHooks } from "node:module";
import { resolve } from "node:path";

const require = createRequire(import.meta.url);
const SDK = /^@nodeyard\/(driver|runtime)(\/|$)/;
let shared = false;

/**
 * Loads an ES module within the call, by the name of a package that is installed with the program or by a path; Node does
 * that for modules without a top-level await. What is loaded gets the program's own copy of the driver SDK, so that
 * a driver needs none beside it and there is only one DriverError.
 */
export function loadModule(specifier: string): unknown {
  if (!shared) {
    shared = true;
    registerHooks({
      resolve: (name, context, next) =>
        next(name, SDK.test(name) ? { ...context, parentURL: import.meta.url } : context),
    });
  }
  return require(/^\.{0,2}\//.test(specifier) ? resolve(specifier) : specifier);
}
