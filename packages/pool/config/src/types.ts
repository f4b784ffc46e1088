import type { DriverConfig, ProviderConfig, Reader, Resources } from "@nodeyard/driver";
import type { Budget } from "@nodeyard/scheduler";
import type { DiskimageConfig, ImageSettings } from "./diskimage-table.ts";
import type { LabelSettings, Top } from "./table.ts";

/**
 * The compiled file: every default applied, references resolved, nothing of the file's spelling left. Immutable; a reload makes
 * another one, and objects that did not change are not shared with it. Durations are milliseconds.
 */
export interface Config extends Pick<Top, "maxHoldAgeMs" | "failedLaunchesPerHour" | "journal" | "webapp"> {
  readonly zookeeper: ZookeeperConfig;
  readonly labels: ReadonlyMap<string, LabelSettings>;
  /** Non-abstract ones by name: what launchers need of them. */
  readonly diskimages: ReadonlyMap<string, DiskimageConfig>;
  /** In the order of the file, by unique names. */
  readonly providers: readonly ProviderConfig[];
  /** By tenant, amounts by resource; absent names are unlimited. */
  readonly tenantLimits: ReadonlyMap<string, Resources>;
  /** By tenant: what its nodes may cost in a month. */
  readonly budgets: ReadonlyMap<string, Budget>;
  /** Weights by name; one that is not named weighs 1. Undefined: requests of one priority are served by age. */
  readonly shares:
    | { readonly tenants: ReadonlyMap<string, number>; readonly clients: ReadonlyMap<string, number> }
    | undefined;
  readonly builder: BuilderSettings;
  /** Log levels by area, which override those of the command line. */
  readonly logLevels: LogLevelSettings;
}

/** Levels by area, `all` included; an absent one is the command line's. */
export type LogLevelSettings = Readonly<
  Partial<Record<Exclude<keyof Top["logLevels"], "at">, "debug" | "info" | "warn" | "error">>
>;

/** `isNamed`: the file has the section, so the operator wants the listener. */
export type WebappConfig = Top["webapp"];

/** Which ZooKeeper the installation is on. */
export interface ZookeeperConfig {
  /** Empty: no ZooKeeper is configured. */
  readonly servers: readonly { readonly host: string; readonly port: number }[];
  /** Empty, or a path that starts with "/" and does not end with one. */
  readonly chroot: string;
  /** Paths of PEM files; null: plain TCP. */
  readonly tls: { readonly cert: string; readonly key: string; readonly ca: string } | null;
  /** Session timeout, milliseconds. */
  readonly timeoutMs: number;
}

/** What only builders need. */
export interface BuilderSettings extends Readonly<Top["builder"]> {
  /** Non-abstract diskimages by name, in the order of the file. */
  readonly images: ReadonlyMap<string, ImageSettings>;
  /** By provider: where images go. Providers that list none have an empty list. */
  readonly uploads: ReadonlyMap<string, UploadSettings>;
}

/** Uploads to one provider, by diskimage. */
export interface UploadSettings {
  /** With {image_name}, {upload_id} and {timestamp}. */
  readonly nameFormat: string;
  /** Path of a program, or null. */
  readonly postUploadHook: string | null;
  readonly images: ReadonlyMap<string, UploadedImageSettings>;
}

/** How one diskimage is uploaded to one provider. */
export interface UploadedImageSettings {
  /** No uploads to this provider. */
  readonly paused: boolean;
  /** `meta` or `tags` of the provider's entry, over the image's own. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The entry as it is written, for the driver. */
  readonly own: Readonly<Record<string, unknown>>;
}

/** A driver of which nothing is here but its name: its providers are accepted by the validator, and not served. */
export type UninstalledDriver = Pick<DriverConfig, "schema" | "notes"> & {
  /** What the loader of the old launcher says of them. */
  read(at: Reader): unknown;
};

/** Drivers by the value of `driver:`; relative paths are relative to where the process runs. */
export interface DriverRegistry {
  /** `trouble`: it is there and cannot be used, or could never be; one sentence that names it. Throws nothing. */
  get(name: string): DriverConfig | UninstalledDriver | { readonly trouble: string } | undefined;
  /** Names that `get` has a driver for, for messages. */
  names(): readonly string[];
}

/** Something to know about a place in the file. */
export interface Finding {
  readonly severity: "error" | "warning";
  /**
   * syntax: no value could be read. schema: the validator. load: the loader. effect: accepted by
   * both, and without effect, or not as it is written. machine: a file or driver that this machine lacks.
   * difference: right, and not as in Nodepool; only where it is asked for.
   */
  readonly source: "syntax" | "schema" | "load" | "effect" | "machine" | "difference";
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** `providers[2] "ec2": pools[0].name`; empty for the file as a whole. */
  readonly path: string;
  /** The value, what is wrong with it, and what to write instead. */
  readonly message: string;
}

/** `file:line:column: path: message` */
export function formatFinding(finding: Finding): string {
  const path = finding.path === "" ? "" : `${finding.path}: `;
  return `${finding.file}:${finding.line}:${finding.column}: ${path}${finding.message}`;
}
