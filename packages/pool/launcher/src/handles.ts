import type { Driver, Provider, ProviderConfig } from "@nodeyard/driver";
import type { Clock, Random } from "@nodeyard/runtime";
import type { Counters, Journal, Live, Log } from "@nodeyard/telemetry";
import type { Tree } from "@nodeyard/tree";
import type { View } from "@nodeyard/view";
import type { AgeClock } from "./age-clock.ts";
import type { Troubles } from "./providers/troubles.ts";

/**
 * What every part of the launcher works with. A part that needs more extends these handles in its own file; `parts.ts` composes all of
 * them. Nothing is global, so that the simulation can crash one process by never settling the promises of its handles.
 */
export interface Handles {
  readonly tree: Tree;
  readonly view: View;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly journal: Journal;
  readonly counters: Counters;
  /** Work in progress, for the stack dump. */
  readonly live: Live;
  /** Tree time for ages and waits; `treeNow` is for what records say. */
  readonly ages: AgeClock;
}

/** An open provider, with its facts. */
export interface OpenProvider {
  readonly config: ProviderConfig;
  readonly driver: Driver;
  readonly provider: Provider;
  /** What its calls say about its cloud. */
  readonly troubles: Troubles;
  /**
   * Work in progress with this provider; after a replacement the provider is closed when the work has ended. Members remove
   * themselves.
   */
  readonly work: Set<Promise<unknown>>;
}

/** One pool of an open provider, as controllers need it. */
export interface ServingPool {
  /** `<provider>/<pool>`, see `poolKey`. */
  readonly key: string;
  /** Launcher-pool id. */
  readonly id: string;
  /** The pool's name within its provider. */
  readonly name: string;
  readonly open: OpenProvider;
}
