import type { DriverConfig, ProviderConfig, Resources } from "@nodeyard/driver";

/** The compiled file: every default applied, references resolved, nothing of the file's spelling left. */
export interface Config {
  readonly zookeeper: ZookeeperConfig;
  readonly labels: ReadonlyMap<string, LabelSettings>;
  /** Non-abstract ones by name. */
  readonly diskimages: ReadonlyMap<string, DiskimageConfig>;
  readonly providers: readonly ProviderConfig[];
  /** Infinity: held nodes are kept for ever. */
  readonly maxHoldAgeMs: number;
  /** Of one offering, at least 1. */
  readonly failedLaunchesPerHour: number;
  /** What the launcher's journal keeps. */
  readonly journal: JournalSettings;
  /** By tenant; absent names are unlimited. */
  readonly tenantLimits: ReadonlyMap<string, Resources>;
  readonly builder: BuilderSettings;
  readonly webapp: WebappConfig;
}

export interface WebappConfig {
  readonly port: number;
  readonly listenAddress: string;
  /** The file has a section for it: somebody wants it there. */
  readonly isNamed: boolean;
}

export interface JournalSettings {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
}

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

export interface LabelSettings {
  readonly name: string;
  /** At least 0. */
  readonly minReady: number;
  /** Infinity: never too old. */
  readonly maxReadyAgeMs: number;
}

/** What labels need of a diskimage. */
export interface DiskimageConfig {
  readonly name: string;
  readonly username: string;
  readonly pythonPath: string;
  readonly shellType: string | null;
}

/** What only builders need. */
export interface BuilderSettings {
  /** Null: not configured, and then no builder can run. */
  readonly imagesDir: string | null;
  readonly elementsDir: string | null;
  readonly logDir: string;
  /** Old logs kept per image, at least 1; Infinity: all. */
  readonly logRetention: number;
  /** Non-abstract diskimages by name, in the order of the file. */
  readonly images: ReadonlyMap<string, ImageSettings>;
  /** By provider: where images go. Providers that list none have an empty list. */
  readonly uploads: ReadonlyMap<string, UploadSettings>;
}

/** How one diskimage is built. */
export interface ImageSettings extends DiskimageConfig {
  /** Formats asked for beside those of providers. */
  readonly formats: readonly string[];
  readonly keepFormats: readonly string[];
  readonly deleteAfterUpload: boolean;
  readonly elements: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly release: string;
  readonly rebuildAgeMs: number;
  /** Whether a change of elements, environment or commands is a reason to build. */
  readonly rebuildOnChange: boolean;
  /** Null: a new build serves all launches at once. */
  readonly canary: CanarySettings | null;
  readonly buildTimeoutMs: number;
  readonly paused: boolean;
  /** Program and first arguments of diskimage-builder. */
  readonly dibCommand: readonly string[];
  /** A program of any kind and its arguments, which takes diskimage-builder's place; null: none. */
  readonly command: readonly string[] | null;
  readonly metadata: Readonly<Record<string, string>>;
}

/** How a new build is tried before it takes over. */
export interface CanarySettings {
  /** Part of the launches that boot it, 0 to 1. */
  readonly share: number;
  /** Launches of it after which it takes over. */
  readonly launches: number;
  readonly maxAgeMs: number;
}

export interface UploadSettings {
  readonly nameFormat: string;
  /** Path of a program, or null. */
  readonly postUploadHook: string | null;
  readonly images: ReadonlyMap<string, UploadedImageSettings>;
}

export interface UploadedImageSettings {
  /** No uploads to this provider. */
  readonly paused: boolean;
  /** `meta` or `tags`. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The entry as it is written, for the driver. */
  readonly own: Readonly<Record<string, unknown>>;
}

/** Drivers by the value of `driver:`; relative paths are relative to where the process runs. */
export interface DriverRegistry {
  /** `trouble`: it is there and cannot be used, or could never be; one sentence that names it. Throws nothing. */
  get(name: string): DriverConfig | { readonly trouble: string } | "known-but-not-built" | undefined;
  /** Names that `get` has a driver for, for messages. */
  names(): readonly string[];
}

/** Something to know about a place in the file. */
export interface Finding {
  readonly severity: "error" | "warning";
  /**
   * syntax: no value could be read. schema: the validator. load: the loader. effect: accepted by
   * both, and without effect.
   */
  readonly source: "syntax" | "schema" | "load" | "effect";
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly column: number;
  /** `providers[2] "ec2": pools[0].name`; empty for the file as a whole. */
  readonly path: string;
  /** What is wrong with which value, and the mend. */
  readonly message: string;
}

/** `file:line:column: path: message` */
export function formatFinding(finding: Finding): string {
  const path = finding.path === "" ? "" : `${finding.path}: `;
  return `${finding.file}:${finding.line}:${finding.column}: ${path}${finding.message}`;
}
