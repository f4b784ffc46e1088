import {
  type Config,
  type ConfigFiles,
  type DriverRegistry,
  type Finding,
  formatFinding,
  loadConfig,
  readConfig,
  type ZookeeperConfig,
  zookeeperPart,
} from "@nodeyard/config";
import type { LauncherConfig } from "@nodeyard/launcher";
import type { Log } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import { withAnyDriver } from "./any-driver.ts";
import { Drivers } from "./driver-registry.ts";
import { loadModule } from "./edge/load-module.ts";
import { ConfigRefused } from "./errors.ts";

/**
 * Reads and compiles a configuration; rejects with ConfigRefused. Warnings are the caller's to show. Without `drivers` the
 * installed ones are loaded.
 */
export async function openConfig(
  files: ConfigFiles,
  { env }: Pick<Machine, "env">,
  drivers: DriverRegistry = new Drivers(loadModule),
): Promise<{ readonly config: Config; readonly warnings: readonly Finding[] }> {
  const read = await readConfig(files, { env, drivers });
  if ("unreadable" in read) {
    const { message, ...finding } = read.unreadable;
    const other =
      finding.file === files.path ? "the configuration with -c FILE" : "the secure file with -s FILE";
    // A file that is there and is not UTF-8 has its remedy in the message.
    const remedy = message.includes("; ") ? "" : `; name ${other}`;
    throw new ConfigRefused([{ ...finding, message: message + remedy }]);
  }
  const { config, findings } = loadConfig(read.input);
  if (config === undefined) throw new ConfigRefused(findings);
  return { config, warnings: findings };
}

/**
 * The ZooKeeper that a configuration names. With `onBroken` it is also read of a file that no launcher can load, if its own keys are right:
 * `onBroken` is then given the first error. Rejects with ConfigRefused.
 */
export async function zookeeperOf(
  files: ConfigFiles,
  machine: Pick<Machine, "env">,
  drivers: DriverRegistry,
  onBroken?: (why: string) => void,
): Promise<ZookeeperConfig> {
  try {
    return (await openConfig(files, machine, drivers)).config.zookeeper;
  } catch (error) {
    if (onBroken === undefined || !(error instanceof ConfigRefused)) throw error;
    const read = await readConfig(files, { ...machine, drivers });
    if ("unreadable" in read) throw error;
    const [text, secureText] = [read.input.text, read.input.secureText ?? "{}"].map(zookeeperPart);
    if (text === undefined || secureText === undefined) throw error;
    const { config, findings } = loadConfig({ ...read.input, text, secureText });
    if (config === undefined) throw new ConfigRefused(findings);
    onBroken(error.message);
    return config.zookeeper;
  }
}

/** Drivers for processes that launch nothing: a driver that is not installed is accepted, so that a command works on any machine. */
export function anyDriver(): DriverRegistry {
  return withAnyDriver(new Drivers(loadModule));
}

/** Each finding is a line with its place. */
export function logFindings(log: Log, findings: readonly Finding[]): void {
  for (const finding of findings) {
    if (finding.severity === "error") log.error({}, formatFinding(finding));
    else log.warn({}, formatFinding(finding));
  }
}

/**
 * The part of the configuration that a launcher works by. Not the names of its own files, servers and listeners: those are the
 * process's.
 */
export function launcherConfig(config: Config): LauncherConfig {
  const { providers, labels, tenantLimits, budgets, shares, maxHoldAgeMs, failedLaunchesPerHour } = config;
  return { providers, labels, tenantLimits, budgets, shares, maxHoldAgeMs, failedLaunchesPerHour };
}
