import type { Tree } from "@nodeyard/tree";
import type { ConfigFiles } from "../config/index.ts";
import type { Machine } from "../machine/index.ts";
import type { Log } from "../telemetry/index.ts";
import { Drivers } from "./driver-registry.ts";
import { makeStateFolder } from "./edge/files.ts";
import { loadModule } from "./edge/load-module.ts";
import { Front, type FrontWish, frontPlaces } from "./front/index.ts";
import { logFindings, openConfig } from "./open-config.ts";
import { openTree } from "./open-tree.ts";
import { patiently } from "./patiently.ts";
import { RunningLauncher } from "./running-launcher.ts";

export interface LauncherProcessOptions {
  readonly stateFolder: string;
  readonly files: ConfigFiles;
  /** Where it can be looked at; absent: nowhere. */
  readonly front?: FrontWish;
}

export interface LauncherProcess {
  close(graceMs: number): Promise<void>;
}

/**
 * A launcher on the tree of its configuration. Resolves when its pools are registered. An abort of `stopping` ends the waiting for a
 * tree, with its reason, and that for providers.
 */
export async function startLauncher(
  options: LauncherProcessOptions,
  machine: Machine,
  log: Log,
  stopping?: AbortSignal,
): Promise<LauncherProcess> {
  const { stateFolder, files } = options;
  const drivers = new Drivers(loadModule);
  const { config, warnings } = await openConfig(files, machine, drivers);
  logFindings(log, warnings);
  makeStateFolder(stateFolder);
  const places = frontPlaces(options.front, config.webapp, stateFolder);
  const front = await Front.open(places, { machine, log, drivers, config });
  const opened: { tree?: Tree } = {};
  try {
    const tree = await patiently(machine, log, () => openTree(options, machine, drivers), stopping);
    opened.tree = tree;
    const parts = { machine, tree, config, files, drivers, log, front, stateFolder };
    const launcher = await RunningLauncher.start(parts, stopping);
    return {
      async close(graceMs) {
        await launcher.close(graceMs);
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
