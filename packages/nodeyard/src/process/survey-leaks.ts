import { driverScanner } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { messageOf } from "@nodeyard/runtime";
import type { Config } from "../config/index.ts";
import { findInstallation } from "../coordination/index.ts";
import { type Difference, listResources, survey } from "../launcher/index.ts";
import { listNodes, type OperationHandles, treeNow } from "../operations/index.ts";
import type { Log } from "../telemetry/index.ts";
import type { Drivers } from "./driver-registry.ts";
import { ProcessError } from "./errors.ts";

export interface LeakSurvey {
  readonly differences: readonly Difference[];
  /** Providers whose cloud could not be asked. */
  readonly troubles: readonly { readonly provider: string; readonly error: string }[];
}

/**
 * What the leak sweeps of all providers, or of one, would do: each cloud is asked what it has. Changes nothing. Providers whose
 * machines carry no tag are left out, as they are by the sweeps. Rejects with ProcessError.
 */
export async function surveyLeaks(
  handles: OperationHandles,
  config: Config,
  drivers: Drivers,
  log: Log,
  only: string | undefined,
): Promise<LeakSurvey> {
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
      "no Nodeyard has ever run on this tree: nothing in any cloud can be of it; name the right tree with -c FILE or --state DIR",
    );
  const scan = driverScanner(createScanner({ clock, random }));
  const differences: Difference[] = [];
  const troubles: { provider: string; error: string }[] = [];
  for (const provider of providers) {
    const driver = drivers.driver(provider.driver);
    if (!driver.capabilities.tags) continue;
    try {
      const asked = treeNow(handles);
      const resources = await listResources(driver, provider, { clock, random, scan, log, installation });
      const { items } = await listNodes(handles);
      const nodes = items.map(({ record, locked }) => {
        return { id: record.id, record, version: 0, contenders: locked ? ["locked"] : [] };
      });
      differences.push(...survey(provider.name, installation, resources, nodes, asked));
    } catch (error) {
      troubles.push({ provider: provider.name, error: messageOf(error) });
    }
  }
  return { differences, troubles };
}
