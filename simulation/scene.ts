import type { FakeCloud } from "@nodeyard/driver-fake";
import type { LauncherConfig } from "@nodeyard/launcher";
import type { Random, VirtualClock } from "@nodeyard/runtime";
import type { MemoryCluster } from "@nodeyard/tree";
import type { Builders, ImageCheck } from "./builder/index.ts";
import type { Effect, LogCheck } from "./checks/index.ts";
import type { CloudObserver } from "./cloud-observer.ts";
import type { Coverage } from "./coverage.ts";
import type { DamagedRecords } from "./damaged-records.ts";
import type { Fault } from "./faults.ts";
import type { LeaseClient } from "./lease-client.ts";
import type { Operator } from "./operator.ts";
import type { LauncherProcess } from "./process.ts";
import type { Requestor } from "./requestor.ts";
import type { Sighting } from "./sightings.ts";
import type { Trap } from "./trap.ts";

/** All parts of one run. */
export interface Scene {
  readonly seed: number;
  readonly stream: (name: string) => Random;
  readonly cluster: MemoryCluster;
  readonly clock: VirtualClock;
  /** By provider. */
  readonly clouds: ReadonlyMap<string, FakeCloud>;
  /** Observers of the calls to clouds, by provider. */
  readonly observers: ReadonlyMap<string, CloudObserver>;
  /** Calls to clouds that are not checked yet, with the number of writes that the tree had by then. */
  readonly effects: { readonly writes: number; readonly effect: Effect }[];
  /** Ids of machines that are not ours, by provider: they must stay. */
  readonly foreign: Map<string, readonly string[]>;
  readonly trap: Trap;
  readonly processes: LauncherProcess[];
  readonly check: LogCheck;
  readonly zuul: Requestor;
  readonly cli: LeaseClient;
  readonly operator: Operator;
  readonly damaged: DamagedRecords;
  readonly builders: Builders;
  readonly images: ImageCheck;
  readonly coverage: Coverage;
  /** Clients whose calls are slow, with the monotonic time at which that ends. */
  readonly slow: Map<string, number>;
  /** How far all wall clocks have jumped, milliseconds. */
  jumped: number;
  /** Monotonic time at which the tree's servers answer again. */
  treeIsBackAt: number;
  /** Monotonic time until which the tree's followers are far behind its leader. */
  readonly followers: { lagUntil: number };
  readonly asked: { count: number };
  config: LauncherConfig;
  /** Whether calls and events get lost. */
  troubled: boolean;
  readonly count: (fault: Fault) => void;
  readonly see: (sighting: Sighting) => void;
  readonly countCrash: (point: string) => void;
  readonly onCloudError: (status: number) => void;
  readonly onTooLarge: () => void;
  readonly onCheck: (effect: Effect) => void;
}
