import type { Driver, Provider, ProviderConfig } from "@nodeyard/driver";
import type { Clock, Random } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import type { Counters, Journal, Live, Log } from "../telemetry/index.ts";
import type { View } from "../view/index.ts";
import type { AgeClock } from "./age-clock.ts";

/**
 * What every part of the launcher works with. Parts that do more have handles of their own that extend these, beside what they do; they
 * are all composed in one place (`parts.ts`). Nothing in them is global, so that a simulation can crash one process by never settling
 * its handles again.
 */
export interface Handles {
  readonly tree: Tree;
  readonly view: View;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly journal: Journal;
  readonly counters: Counters;
  /** What goes on, for the stack dump. */
  readonly live: Live;
  /** Tree time for ages and waits; `treeNow` is for what records say. */
  readonly ages: AgeClock;
}

/** A provider that is open, with what was learnt about it. */
export interface OpenProvider {
  readonly config: ProviderConfig;
  readonly driver: Driver;
  readonly provider: Provider;
  /** What goes on with it: a provider that is replaced is closed when that has ended. */
  readonly work: Set<Promise<unknown>>;
}

/** One pool of an open provider, as controllers need it. */
export interface ServingPool {
  readonly key: string;
  /** Launcher-pool id. */
  readonly id: string;
  readonly name: string;
  readonly open: OpenProvider;
}
