import type { DriverRegistry, UninstalledDriver } from "@nodeyard/config";
import { type Driver, driverProblem, MAPPING } from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import { guarded } from "./driver-guard.ts";
import { ProcessError } from "./errors.ts";

/** Where a driver comes from, by the value of `driver:` (docs/design/drivers.md). */
type DriverSource =
  /** Modules to try, in this order; the driver in them has to have this name. */
  | { readonly name: string; readonly specifiers: readonly string[] }
  /** One module with one driver, whatever that is called. */
  | { readonly name: null; readonly specifiers: readonly [string] };

/** The three ways to name a driver; anything else reaches no loader. */
const NAME = /^[a-z][a-z0-9-]*$/;
const PACKAGE = /^npm:((?:@[a-z0-9][a-z0-9._~-]*\/)?[a-z0-9][a-z0-9._~-]*)$/;
const PATH = /^\.{0,2}\//;

/** Undefined: the value can name no driver. */
function driverSource(value: string): DriverSource | undefined {
  if (NAME.test(value))
    return {
      name: value,
      specifiers: ELSEWHERE[value] ?? [`@nodeyard/driver-${value}`, `nodeyard-driver-${value}`],
    };
  const [, packageName] = PACKAGE.exec(value) ?? [];
  if (packageName !== undefined) return { name: null, specifiers: [packageName] };
  return PATH.test(value) ? { name: null, specifiers: [value] } : undefined;
}

/** The remedy for a value that cannot name a driver. */
const SPELLING =
  'a driver is named by its name, by npm:PACKAGE, or by a path that starts with "./", "../" or "/"';

/** Drivers of Nodepool that have no package. A file that names one is not wrong. `example` is the one on which others are modelled. */
const NOT_BUILT: readonly string[] = ["example"];
/** Every key is accepted: a launcher refuses the file anyway, because the driver is missing. */
const ANY_KEYS: UninstalledDriver = { schema: MAPPING, notes: () => [], read: () => undefined };
/** Names for messages; which of them are installed shows only when they are loaded. */
const SHIPPED = [
  "static",
  "fake",
  "openstack",
  "aws",
  "azure",
  "gce",
  "ibmvpc",
  "kubernetes",
  "openshift",
  "openshiftpods",
  "qemu",
  "lxd",
  "sliver",
  "metastatic",
] as const;
/** Drivers of which a package has more than one. */
const ELSEWHERE: Readonly<Record<string, readonly string[]>> = {
  openshift: ["@nodeyard/driver-kubernetes/openshift"],
  openshiftpods: ["@nodeyard/driver-kubernetes/openshift"],
};

/** Loads a module by its name or path, at once. Throws as `require` does, with MODULE_NOT_FOUND for one that does not exist. */
export type LoadModule = (specifier: string) => unknown;

/**
 * Drivers by the value of `driver:`. A driver is loaded only when a configuration names it, so that an installation pays for no
 * cloud that it does not use, and it is checked against the contract before use. One for each process: a module is loaded once,
 * and a driver that is replaced on disk counts from the next start.
 */
export class Drivers implements DriverRegistry {
  readonly #load: LoadModule;
  readonly #log: Log | undefined;
  readonly #loaded = new Map<string, Driver>();

  /** `log` is for lines of drivers, and for each call of one. */
  constructor(load: LoadModule, { log }: { readonly log?: Log } = {}) {
    this.#load = load;
    this.#log = log;
  }

  /**
   * The configuration part of a driver. Undefined: the name is unknown; `trouble`: the driver is there, or named by a place, and
   * cannot be used. The configuration reports both with their place in the file.
   */
  get(value: string): ReturnType<DriverRegistry["get"]> {
    try {
      return this.driver(value).config;
    } catch (error) {
      if (!(error instanceof ProcessError)) throw error;
      const isMissing = error.code === "process.driver_missing";
      if (isMissing && NOT_BUILT.includes(value)) return ANY_KEYS;
      const unknown = isMissing && !/[/:]/.test(value);
      return unknown ? undefined : { trouble: error.message };
    }
  }

  /** Names that a message can propose. */
  names(): readonly string[] {
    return [...new Set([...SHIPPED, ...this.#loaded.keys()])].sort();
  }

  /** Throws ProcessError when there is no such module, when it cannot be loaded, or when it holds no driver for us. */
  driver(value: string): Driver {
    const known = this.#loaded.get(value);
    if (known !== undefined) return known;
    const source = driverSource(value);
    // The value comes from a file: what follows no rule must not reach the loader.
    if (source === undefined) throw missing(value, SPELLING);
    const driver = guarded(this.#find(value, source), this.#log);
    this.#loaded.set(value, driver);
    return driver;
  }

  /** As `driver`; undefined where it is not installed, or cannot be used. */
  ifInstalled(value: string): Driver | undefined {
    try {
      return this.driver(value);
    } catch (error) {
      if (error instanceof ProcessError) return undefined;
      throw error;
    }
  }

  /** The first module that exists decides, also when it is broken: another one of that name would be a surprise. */
  #find(value: string, source: DriverSource): Driver {
    for (const specifier of source.specifiers) {
      const module = this.#module(value, specifier);
      if (module === undefined) continue;
      const drivers = driversIn(module, source.name);
      const [driver] = drivers;
      const named = source.name === null ? "" : ` named ${source.name}`;
      if (driver === undefined) throw broken(value, specifier, `exports no driver${named}`);
      if (drivers.length > 1)
        throw broken(value, specifier, `exports ${drivers.length} drivers; one module is one driver`);
      const problem = driverProblem(driver);
      if (problem !== undefined) throw broken(value, specifier, problem);
      return driver as Driver;
    }
    const [first, second] = source.specifiers;
    if (source.name !== null) throw missing(value, `there is no package ${first} or ${second}`);
    throw missing(value, `there is no ${value.startsWith("npm:") ? "package" : "file"} ${first}`);
  }

  /** Undefined: the module does not exist. A module that lacks one of its own dependencies counts as broken. */
  #module(value: string, specifier: string): object | undefined {
    try {
      return this.#load(specifier) as object;
    } catch (error) {
      const code = String((error as { code?: unknown }).code);
      const line = messageOf(error).split("\n", 1)[0]!;
      // Node names the missing module in the first line. If it is another one, the driver exists and lacks a dependency.
      const wanted = specifier.replace(/^(\.{1,2}\/)+/, "");
      if (code === "MODULE_NOT_FOUND" && line.endsWith(`${wanted}'`)) return undefined;
      throw broken(value, specifier, `cannot be loaded: ${REMEDIES[code] ?? line}`, error);
    }
  }
}

/** Where what Node says does not tell a driver's author what to do. */
const REMEDIES: Readonly<Record<string, string>> = {
  ERR_REQUIRE_ASYNC_MODULE: "it, or a module that it imports, has a top-level await; wait in open() instead",
  ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING:
    "it is TypeScript, which Node does not run below node_modules; publish the package as JavaScript",
};

/** The exports of a module that look like drivers; with `name`, only the driver of that name. */
function driversIn(module: object, name: string | null): readonly unknown[] {
  const all = [...new Set(Object.values(module))].filter(
    (value) => typeof value === "object" && value !== null && "open" in value && "name" in value,
  );
  return name === null ? all : all.filter((value) => (value as Partial<Driver>).name === name);
}

/** The module does not exist, or the value can name none. */
function missing(value: string, why: string): ProcessError {
  return new ProcessError(
    "process.driver_missing",
    `driver ${JSON.stringify(value)} is not installed: ${why}`,
  );
}

/** The module exists and cannot be used: its author has to act. */
function broken(value: string, specifier: string, why: string, cause?: unknown): ProcessError {
  const from = value === specifier ? value : `${value} (${specifier})`;
  return new ProcessError("process.driver_broken", `driver ${from} ${why}`, { cause });
}
