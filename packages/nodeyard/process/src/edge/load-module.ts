import { createRequire, registerHooks } from "node:module";
import { resolve } from "node:path";

const require = createRequire(import.meta.url);
/** Modules of which there must be one copy in the process: `instanceof` fails for classes of a second one. */
const SDK = /^@nodeyard\/(driver|runtime)(\/|$)/;
let shared = false;

/**
 * Loads an ES module synchronously, by a path or by the name of a package that is installed with the program; Node can do that
 * for modules without top-level await. The module gets the program's own copy of the driver SDK, so that a driver needs no second
 * one and there is only one DriverError class. Relative paths are those of the working directory. Throws as `require` does.
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
