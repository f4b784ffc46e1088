import type { Tree } from "@nodeyard/tree";
import type { Machine } from "../machine/index.ts";
import type { Log } from "../telemetry/index.ts";
import { Drivers } from "./driver-registry.ts";
import { loadModule } from "./edge/load-module.ts";
import { Front, frontPlaces } from "./front/index.ts";
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

/**
 * A builder on the tree of its configuration. Resolves when it works. An abort of `stopping` ends the waiting for a tree, with its
 * reason.
 */
export async function startBuilder(
  options: BuilderProcessOptions,
  machine: Machine,
  log: Log,
  stopping?: AbortSignal,
): Promise<LauncherProcess> {
  const { files, stateFolder, front: wish, ...workers } = options;
  const drivers = new Drivers(loadModule);
  const { config, warnings } = await openConfig(files, machine, drivers);
  logFindings(log, warnings);
  const places = frontPlaces(wish, config.webapp, stateFolder);
  const front = await Front.open(places, { machine, log, drivers, config });
  const opened: { tree?: Tree } = {};
  try {
    const tree = await patiently(machine, log, () => openTree(options, machine, drivers), stopping);
    opened.tree = tree;
    const parts = { machine, tree, config, files, drivers, log, front };
    const builder = await RunningBuilder.start({ ...parts, ...workers });
    return {
      async close(graceMs) {
        await builder.close(graceMs);
        await front.close();
        await tree.close();
      },
    };
  } catch (error) {
    await front.close();
    await opened.tree?.close();
    throw error;
  }
}
