import type { Tree } from "@nodeyard/tree";
import type { Known, Readiness, Work } from "../../api/index.ts";
import type { Config } from "../../config/index.ts";
import type { Machine } from "../../machine/index.ts";
import type { Gauge, StatsdSample } from "../../metrics/index.ts";
import type { Log } from "../../telemetry/index.ts";

/** What a role is made of. */
export interface RoleParts {
  readonly machine: Machine;
  readonly tree: Tree;
  readonly log: Log;
}

/** What runs in a process, a launcher or a builder, as those see it who only look. */
export interface Role {
  readonly known: Known;
  readiness(): Readiness;
  /** Builds and uploads under way; absent: it makes none. */
  readonly work?: () => readonly Work[];
  gauges(): readonly Gauge[];
  /** What a statsd server is told of this process alone. */
  samples(): readonly StatsdSample[];
  /** The configuration in force. */
  config(): Config;
  close(): Promise<void>;
}
