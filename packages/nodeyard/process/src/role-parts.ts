import type { Config, ConfigFiles } from "@nodeyard/config";
import type { ProcessLog } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Tree } from "@nodeyard/tree";
import type { Drivers } from "./driver-registry.ts";
import type { Front } from "./front.ts";

/** What a role is started with: the process has opened it, and closes it after the role. A role opens only its own files. */
export interface RoleParts {
  readonly machine: Machine;
  readonly tree: Tree;
  readonly config: Config;
  /** Where the configuration was read. */
  readonly files: ConfigFiles;
  readonly drivers: Drivers;
  readonly log: ProcessLog;
  readonly front: Front;
}
