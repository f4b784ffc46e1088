import type { Readable } from "node:stream";
import type { Finding } from "@nodeyard/config";
import type { HistoryPoint } from "@nodeyard/metrics";
import type {
  BuildLogPart,
  BuildLogRange,
  ImageWork,
  LauncherUse,
  OperationHandles,
  ProviderMachines,
  TenantUse,
} from "@nodeyard/operations";
import type { Row } from "@nodeyard/operations/listing";
import type { Clock } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { View } from "@nodeyard/view";
import type { EventFile } from "./edge/event-file.ts";
import type { Body } from "./http/reply.ts";
import type { ShortCache } from "./http/short-cache.ts";
import type { EventHub } from "./v1/event-hub.ts";
import type { Issuers } from "./v1/issuers.ts";

/** The result of a recorded demand under a configuration, from planning/; `problem` says why it could not be computed, for people. */
export type ConfigPlan =
  | {
      readonly requests: number;
      readonly rows: readonly object[];
      readonly tenants: readonly object[];
      readonly lost: readonly string[];
      readonly assumed: readonly string[];
    }
  | { readonly problem: string }
  /** Another one is being made. */
  | "busy";

/**
 * What the process knows, as soon as it knows anything. The view may be incomplete while the tree is away: `view.complete` says
 * so.
 */
export interface Known {
  readonly view: View;
  readonly handles: OperationHandles;
  /** Where events are kept for clients that come back after a restart; absent: the process has no folder of its own. */
  readonly events?: EventFile;
}

/** Whether the process does its work now; `why` names what is missing. */
export interface Readiness {
  readonly ready: boolean;
  readonly why: string;
}

/** A build or an upload under way in this process, by its builder. */
export type Work = Readonly<ImageWork>;

/** A page of metrics and its content type. */
export interface Page {
  readonly type: string;
  readonly text: string;
}

/** Where a process serves a copy of its tree, by its Unix socket alone. */
export const BACKUP_PATH = "/api/v1/backup";

/** A copy of the embedded tree, to be read once. */
export interface Backup {
  readonly bytes: number;
  readonly stream: Readable;
}

/** A call that changed something, or that was refused. */
export interface AuditEntry {
  /** `socket`, `token:NAME`, or `cli:USER@HOST` of a command on the tree. */
  readonly who: string;
  readonly role: string;
  /** The operation of REST v1. */
  readonly action: string;
  /** The object of the call; "": a new one. */
  readonly subject: string;
  readonly why: string | null;
  /** Of the HTTP reply. */
  readonly status: number;
}

/** A call as it was noted. */
export interface PastAudit extends AuditEntry {
  /** Wall clock, milliseconds. */
  readonly at: number;
}

/** Where the calls are noted that change something: only ever added to. */
export interface Audit {
  /** Resolves when it outlives the process; never rejects. */
  write(entry: AuditEntry): Promise<void>;
  /** The latest of this process, oldest first. */
  read(): Promise<readonly PastAudit[]>;
}

/** Where answers come from. Asked again for each request: a process listens before it knows anything. */
export interface Sources {
  /** Undefined: the tree has not been seen yet. */
  known(): Known | undefined;
  readiness(): Readiness;
  /** What does not go on, and only a restart would help; undefined: nothing. */
  stuck(): string | undefined;
  /** Undefined: no builder runs in this process. */
  work(): readonly Work[] | undefined;
  /** As the launcher of this process has them; empty: there is none. */
  providers(): readonly LauncherUse[];
  /** What the launcher of this process knows of tenants; absent or undefined: there is none. */
  tenants?(): readonly TenantUse[] | undefined;
  /** Of the providers of this process whose nodes are slivers. Takes some seconds, at most. */
  sliverMachines(): Promise<readonly ProviderMachines[]>;
  /** The last day in numbers, oldest first; empty where no launcher runs in this process. */
  history(): readonly HistoryPoint[];
  /** A part of a log that this process's builder has, once there is one; undefined: it has not. */
  buildLog(range: BuildLogRange, waitMs: number): Promise<BuildLogPart | undefined>;
  /** What config-validate finds in the text of a configuration. Environment variables are not filled in: findings quote values. */
  checkConfig(text: string): Promise<readonly Finding[]>;
  /** Takes up to a minute. Undefined: the process keeps no journal. */
  planConfig(text: string, days: number): Promise<ConfigPlan | undefined>;
  /**
   * What clouds have that no record stands for (`nodeyard leaks`, `alien-image-list`); undefined: no launcher runs in this
   * process. `only`: name of a provider; undefined: all. Rejects with ProcessError.
   */
  survey?(what: "leaks" | "images", only: string | undefined): Promise<Survey | undefined>;
  /** For Prometheus. Waits five seconds at most for sliver machines. */
  metrics(): Promise<Page>;
  /** Undefined: the process keeps no journal, and so changes nothing. */
  audit(): Audit | undefined;
  /** Absent: the process holds no embedded tree. */
  readonly backup?: () => Promise<Backup>;
}

/** Rows of a list, and the providers whose cloud could not be asked. */
export interface Survey {
  readonly found: readonly Row[];
  readonly failures: readonly { readonly provider: string; readonly error: string }[];
}

/** What answers are made with; one for all the addresses that a process listens on. */
export interface AppParts {
  readonly clock: Clock;
  readonly log: Log;
  readonly sources: Sources;
  /** Bodies that were computed within the last second. */
  readonly answers: ShortCache<Body>;
  readonly issuers: Issuers;
  /** Where the process listens by TCP; null: nowhere. */
  address(): string | null;
  /** The events of this view, for all who follow them; made when the first one does. */
  hub(known: Known): EventHub;
}
