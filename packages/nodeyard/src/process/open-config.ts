import {
  type Config,
  type ConfigFiles,
  type Finding,
  formatFinding,
  loadConfig,
  readConfig,
} from "../config/index.ts";
import type { LauncherConfig } from "../launcher/index.ts";
import type { Machine } from "../machine/index.ts";
import type { Log } from "../telemetry/index.ts";
import { Drivers } from "./driver-registry.ts";
import { loadModule } from "./edge/load-module.ts";
import { ConfigRefused } from "./errors.ts";

/** Reads and compiles a configuration; rejects with ConfigRefused. Warnings are the caller's to show. */
export async function openConfig(
  files: ConfigFiles,
  { env }: Pick<Machine, "env">,
  drivers: Drivers = new Drivers(loadModule),
): Promise<{ readonly config: Config; readonly warnings: readonly Finding[] }> {
  const read = await readConfig(files, { env, drivers });
  if ("unreadable" in read) {
    const { message, ...finding } = read.unreadable;
    const mend =
      finding.file === files.path ? "the configuration with -c FILE" : "the secure file with -s FILE";
    throw new ConfigRefused([{ ...finding, message: `${message}; name ${mend}` }]);
  }
  const { config, findings } = loadConfig(read.input);
  if (config === undefined) throw new ConfigRefused(findings);
  return { config, warnings: findings };
}

/** The part of the file that the launcher works by. */
export function launcherConfig(config: Config): LauncherConfig {
  const { providers, labels, tenantLimits, maxHoldAgeMs, failedLaunchesPerHour } = config;
  return { providers, labels, tenantLimits, maxHoldAgeMs, failedLaunchesPerHour };
}

export function logFindings(log: Log, findings: readonly Finding[]): void {
  for (const finding of findings) {
    if (finding.severity === "error") log.error({}, formatFinding(finding));
    else log.warn({}, formatFinding(finding));
  }
}
