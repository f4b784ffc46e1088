import type { Config } from "@nodeyard/config";
import { driverScanner } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { Shadow } from "@nodeyard/launcher";
import { ShadowBook, type ShadowRow, type ShadowSummary } from "@nodeyard/planning";
import { Counters, type Log } from "@nodeyard/telemetry";
import { type Machine, VERSION } from "@nodeyard/telemetry/machine";
import type { Tree } from "@nodeyard/tree";
import type { Drivers } from "./driver-registry.ts";
import { launcherConfig } from "./open-config.ts";

/** A launcher that only says what it would do. */
export interface RunningShadow {
  summary(): ShadowSummary;
  close(): Promise<void>;
}

/**
 * Follows the tree as a launcher with the configuration would, and writes nothing. `onRow` gets each request that is over. Resolves when the
 * tree is read and each provider was tried once.
 */
export async function startShadow(
  {
    tree,
    config,
    drivers,
    log,
  }: { readonly tree: Tree; readonly config: Config; readonly drivers: Drivers; readonly log: Log },
  { clock, random, hostname }: Machine,
  onRow: (row: ShadowRow) => void,
): Promise<RunningShadow> {
  const book = new ShadowBook(clock, onRow);
  const shadow = await Shadow.start(
    {
      tree,
      clock,
      random,
      scan: driverScanner(createScanner({ clock, random })),
      log,
      counters: new Counters(),
      identity: { hostname, fqdn: hostname, version: VERSION },
      driverOf: async (name) => drivers.driver(name),
      config: launcherConfig(config),
    },
    (request, decision) => book.decided(request, decision),
    (view) => book.follow(view),
  );
  return { summary: () => book.summary(), close: () => shadow.close() };
}
