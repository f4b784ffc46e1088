import type {
  CreateOrder,
  Driver,
  Machine,
  Provider,
  ProviderConfig,
  Step,
  StepContext,
} from "@nodeyard/driver";
import type { Clock, Random } from "@nodeyard/runtime";
import type { Tree } from "@nodeyard/tree";
import type { Counters, Journal, Live, Log } from "../telemetry/index.ts";
import type { View } from "../view/index.ts";
import type { AgeClock } from "./age-clock.ts";
import type { HeldNode } from "./held-records.ts";

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
  /** Its nodes are slots of backing nodes, kept in the tree: what takes the driver's place in a launch. */
  readonly slots?: SlotSource;
}

export interface SlotSource {
  /** As `Provider.create`, and writes the slot into the record of `node`, which is locked by us. */
  launch(order: CreateOrder, step: StepContext, node: HeldNode): AsyncGenerator<Step, Machine, void>;
  /** As `Provider.remove`, and takes the slot out of the record of `node`, which is locked by us. */
  free(step: StepContext, node: HeldNode): AsyncGenerator<Step, void, void>;
  /** Before a ready node that we hold is handed out: what its slot lent is back when it resolves. Rejects with DriverError. */
  recall(node: HeldNode, signal: AbortSignal): Promise<void>;
  /** Its pools are registered: it may ask for backing nodes from now on. */
  serve(): void;
  /** Nothing is claimed from now on: each launch fails with `why`. */
  refuse(why: Error): void;
  /**
   * It has left the configuration and the registry: what it has is given back as it becomes free, and `ended` is called when nothing is
   * left to do. False: others serve it, and nothing is to be done here.
   */
  drain(ended: () => void): Promise<boolean>;
  /** It is replaced or removed: launches under way go on, and nothing else. */
  retire(): Promise<void>;
}

/** One pool of an open provider, as controllers need it. */
export interface ServingPool {
  readonly key: string;
  /** Launcher-pool id. */
  readonly id: string;
  readonly name: string;
  readonly open: OpenProvider;
}
