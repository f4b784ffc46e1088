import { type Driver, driverScanner, type ProviderConfig, type Resource } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { messageOf } from "@nodeyard/runtime";
import type { Config } from "../config/index.ts";
import { findInstallation } from "../coordination/index.ts";
import { listResources } from "../launcher/index.ts";
import { type OperationHandles, treeNow } from "../operations/index.ts";
import type { Log } from "../telemetry/index.ts";
import type { Drivers } from "./driver-registry.ts";
import { ProcessError } from "./errors.ts";

export interface CloudQuestion {
  readonly handles: OperationHandles;
  readonly config: Config;
  readonly drivers: Drivers;
  readonly log: Log;
  /** Name of a provider; undefined: all. */
  readonly only: string | undefined;
}

/** What one cloud has. */
export interface CloudAnswer {
  readonly provider: string;
  readonly installation: string;
  readonly resources: readonly Resource[];
  /** Tree time before it was asked, milliseconds. */
  readonly asked: number;
}

export interface Answers<T> {
  readonly found: readonly T[];
  /** Providers whose cloud could not be asked. */
  readonly failures: readonly { readonly provider: string; readonly error: string }[];
}

/**
 * Asks the cloud of every provider, or of one, what it has, and collects what `look` finds in it. Changes nothing. `wanted` leaves
 * providers out. Rejects with ProcessError.
 */
export async function askClouds<T>(
  { handles, config, drivers, log, only }: CloudQuestion,
  wanted: (driver: Driver, provider: ProviderConfig) => boolean,
  look: (answer: CloudAnswer) => Promise<readonly T[]>,
): Promise<Answers<T>> {
  const { clock, random, tree } = handles;
  const providers = config.providers.filter(({ name }) => only === undefined || name === only);
  if (only !== undefined && providers.length === 0)
    throw new ProcessError(
      "process.no_such_provider",
      `the configuration has no provider ${only}; it has: ${config.providers.map(({ name }) => name).join(", ")}`,
    );
  const installation = await findInstallation(tree);
  if (installation === undefined)
    throw new ProcessError(
      "process.no_installation",
      "no Nodeyard has ever run on this tree, so it owns nothing in any cloud; name the right tree with -c FILE or --state DIR",
    );
  const scan = driverScanner(createScanner({ clock, random }));
  const found: T[] = [];
  const failures: { provider: string; error: string }[] = [];
  for (const provider of providers) {
    const driver = drivers.driver(provider.driver);
    if (!wanted(driver, provider)) continue;
    try {
      const asked = treeNow(handles);
      const resources = await listResources(driver, provider, { clock, random, scan, log, installation });
      found.push(...(await look({ provider: provider.name, installation, resources, asked })));
    } catch (error) {
      failures.push({ provider: provider.name, error: messageOf(error) });
    }
  }
  return { found, failures };
}
