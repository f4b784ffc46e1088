import { isDeepStrictEqual } from "node:util";
import type { Config } from "@nodeyard/config";
import { findInstallation } from "@nodeyard/coordination";
import { type Driver, driverScanner, type InventoryItem, type ProviderConfig } from "@nodeyard/driver";
import { createScanner } from "@nodeyard/keyscan";
import { planSlots } from "@nodeyard/launcher";
import { judgeTakeover, type TakeoverVerdict } from "@nodeyard/legacy";
import { type LauncherKind, takeoverFacts } from "@nodeyard/operations";
import { choices } from "@nodeyard/runtime";
import { Counters, type Log } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Tree } from "@nodeyard/tree";
import { View } from "@nodeyard/view";
import type { Drivers } from "./driver-registry.ts";
import { ProcessError } from "./errors.ts";

/** Changes that come together are one. */
const GATHER_MS = 200;

/** What a move of a provider is followed with. */
export interface TakeoverQuestion {
  readonly tree: Tree;
  /** Of Nodeyard's launcher; and of Nodepool's, where it was given. */
  readonly config: Config;
  readonly other: Config | undefined;
  readonly drivers: Drivers;
  readonly log: Log;
  readonly provider: string;
  readonly to: LauncherKind;
  readonly idle: boolean;
}

/** A move of a provider that is followed. */
export interface RunningTakeover {
  look(): Promise<TakeoverVerdict>;
  /** Resolves when something has changed since the last look. */
  changed(): Promise<void>;
  close(): Promise<void>;
}

/** Reads the tree and follows it; writes nothing. Rejects with ProcessError for a provider that neither file has. */
export async function startTakeover(question: TakeoverQuestion, machine: Machine): Promise<RunningTakeover> {
  const { tree, config, other, drivers, log, provider, to, idle } = question;
  const { clock, random } = machine;
  const named = (of: Config | undefined) => of?.providers.find(({ name }) => name === provider);
  const [ours, theirs] = [named(config), named(other)];
  const wanted = ours ?? theirs;
  if (wanted === undefined)
    throw new ProcessError(
      "process.no_such_provider",
      `the configuration has no provider ${provider}; ${choices(
        provider,
        config.providers.map(({ name }) => name),
      )}`,
    );
  const driver = drivers.driver(wanted.driver);
  const items = await inventoryOf(driver, wanted, question, machine);
  const labels = new Set([
    ...wanted.pools.flatMap((pool) => [...pool.labels.keys()]),
    ...(items ?? []).flatMap((item) => item.labels),
  ]);
  const differences = ours && theirs ? differencesOf(ours, theirs) : [];
  const view = new View({ tree, clock, random, log, counters: new Counters() });
  await view.start();
  let changed = Promise.withResolvers<void>();
  view.onEvent(() => changed.resolve());
  return {
    async look() {
      changed = Promise.withResolvers();
      const facts = await takeoverFacts({ tree }, view, provider, labels);
      return judgeTakeover(facts, {
        to,
        driver: wanted.driver,
        exclusive: driver.capabilities.inventory || driver.slots !== undefined,
        idle,
        differences,
        ...(items && { hosts: hostsOf(items, view, provider) }),
      });
    },
    async changed() {
      await changed.promise;
      await new Promise<void>((resolve) => clock.setTimer(GATHER_MS, resolve));
    },
    close: () => view.close(),
  };
}

/** The hosts of the file, of a driver that has some; undefined: it has none. Contacts nothing. */
async function inventoryOf(
  driver: Driver,
  config: ProviderConfig,
  { tree, log }: TakeoverQuestion,
  { clock, random }: Machine,
): Promise<readonly InventoryItem[] | undefined> {
  if (!driver.capabilities.inventory) return undefined;
  const scan = driverScanner(createScanner({ clock, random }));
  const installation = (await findInstallation(tree)) ?? random.uuid();
  const open = await driver.open(config, { clock, random, scan, log, installation, purpose: "look" });
  try {
    return open.inventory();
  } finally {
    await open.close();
  }
}

/** Compares hosts with records, as a launcher does that registers them. */
function hostsOf(items: readonly InventoryItem[], view: View, provider: string) {
  const nodes = [...view.nodes.byProvider.get(provider)].map((id) => view.nodes.byId.get(id)!);
  const { register, leaving } = planSlots(items, nodes, view.unreadable.ofProvider(provider));
  return { missing: register.map(({ item }) => item.key), strange: leaving };
}

/** In words, pool by pool. */
function differencesOf(ours: ProviderConfig, theirs: ProviderConfig): readonly string[] {
  const found: string[] = [];
  for (const name of new Set([...ours.pools, ...theirs.pools].map((pool) => pool.name))) {
    const [here, there] = [ours, theirs].map(({ pools }) => pools.find((pool) => pool.name === name));
    if (here === undefined || there === undefined) {
      found.push(`pool ${name} is only in the file of ${here === undefined ? "Nodepool" : "Nodeyard"}`);
      continue;
    }
    const only = (a: typeof here, b: typeof here) =>
      [...a.labels.keys()].filter((label) => !b.labels.has(label));
    const [more, less] = [only(here, there), only(there, here)];
    if (more.length > 0) found.push(`pool ${name}: only Nodeyard's file has ${more.join(", ")}`);
    if (less.length > 0) found.push(`pool ${name}: only Nodepool's file has ${less.join(", ")}`);
    if (more.length === 0 && less.length === 0 && !isDeepStrictEqual(here, there))
      found.push(`pool ${name} has other settings in the two files`);
  }
  if (ours.driver !== theirs.driver)
    found.push(`the driver is ${theirs.driver} there and ${ours.driver} here`);
  return found;
}
