import type { Driver } from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import type { DriverRegistry } from "../config/index.ts";
import { ProcessError } from "./errors.ts";

/** Drivers of the old launcher that have no package yet. A file that names one is not wrong. */
const NOT_BUILT: ReadonlySet<string> = new Set([
  "aws",
  "azure",
  "gce",
  "ibmvpc",
  "kubernetes",
  "metastatic",
  "openshift",
  "openshiftpods",
  "openstack",
]);
const SHIPPED = ["static", "fake"] as const;

/** Loads a module by its name, at once. */
export type LoadModule = (specifier: string) => unknown;

/**
 * Drivers by name, each from its package `@nodeyard/driver-<name>` and loaded only when a configuration names it, so that
 * nobody pays for a cloud that is not used.
 */
export class Drivers implements DriverRegistry {
  readonly #load: LoadModule;
  readonly #loaded = new Map<string, Driver>();

  constructor(load: LoadModule) {
    this.#load = load;
  }

  /** For the configuration: what is not installed is unknown there, and the file's place is named. */
  get(name: string): Driver["config"] | "known-but-not-built" | undefined {
    try {
      return this.driver(name).config;
    } catch (error) {
      if (!(error instanceof ProcessError) || error.code !== "process.driver_missing") throw error;
      return NOT_BUILT.has(name) ? "known-but-not-built" : undefined;
    }
  }

  names(): readonly string[] {
    return [...new Set([...SHIPPED, ...this.#loaded.keys()])].sort();
  }

  /** Throws ProcessError when the package is not there or exports no such driver. */
  driver(name: string): Driver {
    const known = this.#loaded.get(name);
    if (known !== undefined) return known;
    const specifier = `@nodeyard/driver-${name}`;
    // The name comes from a file and must not reach beyond our own packages.
    const module = /^[a-z][a-z0-9-]*$/.test(name) ? this.#module(name, specifier) : undefined;
    if (module === undefined)
      throw new ProcessError(
        "process.driver_missing",
        `driver ${JSON.stringify(name)} is not installed: there is no package ${specifier}`,
      );
    const driver = Object.values(module).find((value) => isDriver(value, name));
    if (driver === undefined)
      throw new ProcessError("process.driver_broken", `${specifier} exports no driver named ${name}`);
    this.#loaded.set(name, driver as Driver);
    return driver as Driver;
  }

  #module(name: string, specifier: string): object | undefined {
    try {
      return this.#load(specifier) as object;
    } catch (error) {
      const missing = (error as { code?: unknown }).code === "MODULE_NOT_FOUND";
      if (missing && messageOf(error).includes(`'${specifier}'`)) return undefined;
      throw new ProcessError(
        "process.driver_broken",
        `driver ${name} (${specifier}) cannot be loaded: ${messageOf(error).split("\n", 1)[0]}`,
        { cause: error },
      );
    }
  }
}

function isDriver(value: unknown, name: string): value is Driver {
  return (
    typeof value === "object" &&
    value !== null &&
    (value as Partial<Driver>).name === name &&
    typeof (value as Partial<Driver>).open === "function"
  );
}
