import type { Driver, Evidence, ProviderConfig, Resources, Scanner } from "@nodeyard/driver";
import type { Clock, Random, Span } from "@nodeyard/runtime";
import type { Budget, LabelPolicy, ShareWeights } from "@nodeyard/scheduler";
import type { Counters, History, Journal, Log, Subject } from "@nodeyard/telemetry";
import type { Tree } from "@nodeyard/tree";
import type { View } from "@nodeyard/view";
import type { RunCheck } from "./nodes/handles.ts";
import type { Identity } from "./providers/served.ts";

/** The part of the configuration that the launcher works by. */
export interface LauncherConfig {
  readonly providers: readonly ProviderConfig[];
  /** By name: what the scheduler needs of each label, such as `min-ready`. */
  readonly labels: ReadonlyMap<string, LabelPolicy>;
  /** By tenant name; tenants without an entry have no limit. */
  readonly tenantLimits: ReadonlyMap<string, Resources>;
  /** By tenant name: what its nodes may cost in a month; absent: no tenant has a budget. */
  readonly budgets?: ReadonlyMap<string, Budget>;
  /** Absent: requests of one priority are served by age. */
  readonly shares?: ShareWeights | undefined;
  /** Age at which a node in `hold` is deleted, milliseconds; Infinity: never. A record's own `hold_expiration` may be shorter. */
  readonly maxHoldAgeMs: number;
  /** Of one offering (place and type), and of one label in all places; absent: 60. */
  readonly failedLaunchesPerHour?: number;
}

/** The handles of one process. In a simulation a crash is when they never settle again. */
export interface LauncherOptions {
  readonly tree: Tree;
  readonly clock: Clock;
  readonly random: Random;
  /** Connects to a new machine until it answers, and reads its host keys. */
  readonly scan: Scanner;
  /** Runs programs that say whether a node may be used again; absent: every node is deleted after its use. */
  readonly check?: RunCheck;
  readonly log: Log;
  readonly journal: Journal;
  readonly counters: Counters;
  /** What records of this process say of it: host name, fully qualified name and version. */
  readonly identity: Identity;
  /**
   * Loads a driver by the name that a provider's configuration has. Rejects when it cannot be loaded; that provider is then tried
   * again, and the others are served.
   */
  readonly driverOf: (name: string) => Promise<Driver>;
  /** In force from the start; later ones come by `Launcher.reconfigure`. */
  readonly config: LauncherConfig;
  /** What outlives nodes of whose their resources were; absent: drivers remember as long as the process lives. */
  readonly evidence?: Evidence;
  /** Folder of this process for what outlives it, handed to drivers. */
  readonly stateFolder?: string;
  /** Reads past events of a subject from the journal; absent: this process keeps no journal. */
  readonly history?: (subject: Subject) => Promise<History>;
  /** The view has been read whole, and the launcher has not acted yet. */
  readonly onView?: (view: View) => void;
  /** Takes the spans of requests; absent: none are made. */
  readonly trace?: (span: Span) => void;
  /** Requests between acceptance and the start of their last launch, at most; absent: 256. */
  readonly maxStarting?: number;
}
