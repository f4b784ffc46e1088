import type { Log } from "../telemetry/index.ts";
import { Drivers } from "./driver-registry.ts";
import { loadModule } from "./edge/load-module.ts";
import type { Machine } from "./machine.ts";
import { logFindings, openConfig } from "./open-config.ts";
import { openTree } from "./open-tree.ts";
import { patiently } from "./patiently.ts";
import { RunningBuilder } from "./running-builder.ts";
import type { LauncherProcess, LauncherProcessOptions } from "./start-launcher.ts";

export interface BuilderProcessOptions extends LauncherProcessOptions {
  /** Builds at once; default 1. */
  readonly buildWorkers?: number;
  /** Uploads at once; default 4. */
  readonly uploadWorkers?: number;
}

/** A builder on the tree of its configuration. Resolves when it works. */
export async function startBuilder(
  options: BuilderProcessOptions,
  machine: Machine,
  log: Log,
): Promise<LauncherProcess> {
  const { files, stateFolder: _, ...workers } = options;
  const drivers = new Drivers(loadModule);
  const { config, warnings } = await openConfig(files, machine, drivers);
  logFindings(log, warnings);
  const tree = await patiently(machine, log, () => openTree(options, machine, drivers));
  try {
    const builder = await RunningBuilder.start({ machine, tree, config, files, drivers, log, ...workers });
    return {
      async close(graceMs) {
        await builder.close(graceMs);
        await tree.close();
      },
    };
  } catch (error) {
    await tree.close();
    throw error;
  }
}
