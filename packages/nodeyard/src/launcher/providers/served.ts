import type { ProviderConfig } from "@nodeyard/driver";
import type { Timer } from "@nodeyard/runtime";
import type { LocalPool, LocalProvider } from "../../scheduler/index.ts";
import type { OpenProvider, ServingPool } from "../context.ts";
import type { ForeignWatch } from "./foreign.ts";
import type { InventoryKeeper } from "./inventory.ts";
import type { LeakSweep } from "./leaks.ts";
import type { ProviderFacts } from "./providers.ts";

/** A provider of the configuration, whether or not it is open. */
export interface Served {
  readonly config: ProviderConfig;
  readonly stop: AbortController;
  /** Ids of its pools that stand in the registry or may. */
  readonly registered: string[];
  open: OpenProvider | undefined;
  facts: ProviderFacts | undefined;
  inventory: InventoryKeeper | undefined;
  leaks: LeakSweep | undefined;
  foreign: ForeignWatch | undefined;
  timer: Timer | undefined;
  attempt: number;
  /** Its facts are about to be learnt anew. */
  asked: boolean;
  /** Times in a row that the cloud listed machines of ours without a record. */
  unsettled: number;
  /** Its API fails: since when and with what it was found to, and when it is asked again. */
  failing: { readonly since: number; readonly error: string; readonly nextTry: number } | undefined;
}

export function newServed(config: ProviderConfig): Served {
  return {
    config,
    stop: new AbortController(),
    registered: [],
    open: undefined,
    facts: undefined,
    inventory: undefined,
    leaks: undefined,
    foreign: undefined,
    timer: undefined,
    attempt: 0,
    asked: false,
    unsettled: 0,
    failing: undefined,
  };
}

/** A provider that cannot be served as it is configured, because its API fails. */
export interface ClosedProvider {
  readonly name: string;
  /** It goes on as it was configured before: only the new configuration is not in force. */
  readonly goesOn: boolean;
  readonly pools: readonly { readonly name: string; readonly labels: ReadonlySet<string> }[];
  /** Tree time, milliseconds. */
  readonly since: number;
  readonly nextTry: number;
  readonly error: string;
}

/** Those that could not be opened or are suspended. `goesOn`: each has one before it that is served. */
export function closedOf(all: Iterable<Served>, goesOn: boolean): readonly ClosedProvider[] {
  return [...all].flatMap(({ config, open, failing }) => {
    if (open !== undefined || failing === undefined) return [];
    const pools = config.pools.map(({ name, labels }) => ({ name, labels: new Set(labels.keys()) }));
    return [{ name: config.name, goesOn, pools, ...failing }];
  });
}

/** What the scheduler is to know of those that are open. */
export function localsOf(
  all: Iterable<Served>,
  serving: ReadonlyMap<string, ServingPool>,
): { readonly pools: readonly LocalPool[]; readonly providers: ReadonlyMap<string, LocalProvider> } {
  const pools: LocalPool[] = [];
  const providers = new Map<string, LocalProvider>();
  for (const { facts, failing } of all) {
    if (facts === undefined) continue;
    providers.set(facts.local.name, failing === undefined ? facts.local : { ...facts.local, failing });
    for (const pool of facts.pools) {
      const served = serving.get(pool.key);
      if (served !== undefined) pools.push({ ...pool, id: served.id });
    }
  }
  return { pools, providers };
}
