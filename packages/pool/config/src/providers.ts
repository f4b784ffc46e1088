import { dirname, isAbsolute, join } from "node:path/posix";
import { type DriverConfig, isMapping } from "@nodeyard/driver";
import { nearest } from "@nodeyard/runtime";
import type { Path } from "./findings.ts";
import type { DriverRegistry, UninstalledDriver } from "./types.ts";

/** What a provider without `driver:` is for (docs/contract/config.md, "Providers and drivers"). */
export const DEFAULT_DRIVER = "openstack";
/**
 * Rule 2 of the driver's choice: a provider whose name starts so is always this driver's (docs/contract/config.md, "Providers and
 * drivers").
 */
const FAKE = "fake";

type Raw = Readonly<Record<string, unknown>>;

/** A provider with its driver, or undefined where no driver can judge it. */
export type Resolved =
  | {
      readonly raw: Raw;
      readonly path: Path;
      readonly name: string;
      /** What the registry knows it by: paths start from the file's folder no more. */
      readonly driver: string;
      readonly config: DriverConfig | UninstalledDriver;
    }
  /** Named, but nothing can be said about its keys. */
  | undefined;

/**
 * How findings count: a wrong name or driver is an error of validator and loader; a driver that is not built yet keeps only the
 * loader out.
 */
export interface ResolveReport {
  both(path: Path, message: string): void;
  load(path: Path, message: string): void;
  warn(path: Path, message: string): void;
}

/**
 * The driver of one entry of `providers`. `file` is the path of the configuration: where drivers that are named by a relative
 * path are looked for. Findings go to `report`; used by validator and loader, so that they choose alike.
 */
export function resolveProvider(
  value: unknown,
  index: number,
  drivers: DriverRegistry,
  file: string,
  report: ResolveReport,
): Resolved {
  const path = ["providers", index] as const;
  if (!isMapping(value)) {
    report.both(path, "must be a mapping");
    return undefined;
  }
  if (typeof value.name !== "string" || value.name === "") {
    report.both([...path, "name"], "must be a string, and not empty");
    return undefined;
  }
  const written = driverOf(value, value.name, path, report);
  if (typeof written !== "string") {
    report.both([...path, "driver"], "must be a string");
    return undefined;
  }
  const driver = fromFolderOf(file, written);
  const config = drivers.get(driver);
  if (config === undefined) {
    const hint = nearest(driver, drivers.names());
    const known = hint === undefined ? `known here: ${drivers.names().join(", ")}` : `did you mean ${hint}?`;
    report.both([...path, "driver"], `names driver ${driver}, which does not exist; ${known}`);
    return undefined;
  }
  if (typeof config === "object" && "trouble" in config) {
    report.both([...path, "driver"], config.trouble);
    return undefined;
  }
  if (!("load" in config)) {
    const message = `needs driver ${driver}, which this version of Nodeyard does not have; remove the provider, or leave it to a launcher that has it`;
    report.load([...path, ...("driver" in value ? ["driver"] : [])], message);
  }
  return { raw: value, path, name: value.name, driver, config };
}

/** `./lab.ts` beside `/etc/nodeyard/nodepool.yaml` is `/etc/nodeyard/lab.ts`; anything else is as it was written. */
function fromFolderOf(file: string, written: string): string {
  if (!/^\.\.?\//.test(written)) return written;
  const path = join(dirname(file), written);
  return isAbsolute(path) || path.startsWith("../") ? path : `./${path}`;
}

/** The value of `driver:`, as it is written, whatever type that is. */
function driverOf(value: Raw, name: string, path: Path, report: ResolveReport): unknown {
  const written = "driver" in value ? value.driver : DEFAULT_DRIVER;
  if (!name.startsWith(FAKE)) return written;
  if (written !== FAKE) {
    const instead =
      "driver" in value
        ? `driver ${typeof written === "string" ? written : "of another type"}`
        : `the default driver ${DEFAULT_DRIVER}`;
    report.warn(
      [...path, "name"],
      `starts with ${FAKE}, so that driver ${FAKE} is used instead of ${instead}; rename it, or write driver: ${FAKE}`,
    );
  }
  return FAKE;
}
