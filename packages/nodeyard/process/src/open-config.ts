import {
  type Config,
  type ConfigDiff,
  type ConfigFiles,
  ConfigWatch,
  type DriverRegistry,
  type Finding,
  formatFinding,
  loadConfig,
  readConfig,
  type ZookeeperConfig,
  zookeeperPart,
} from "@nodeyard/config";
import type { LauncherConfig } from "@nodeyard/launcher";
import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import { withAnyDriver } from "./any-driver.ts";
import { Drivers, type UninstalledDrivers } from "./driver-registry.ts";
import { loadModule } from "./edge/load-module.ts";
import { ConfigRefused } from "./errors.ts";
import type { RoleParts } from "./role.ts";

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

/** Drivers for a validator: it also judges providers of drivers that are not installed, by tables that no daemon loads. */
export async function validatorDrivers(): Promise<Drivers> {
  return new Drivers(loadModule, { uninstalled: await uninstalledDrivers() });
}

/** Keys of Nodepool's drivers that have no package yet, by the drivers' names. */
export async function uninstalledDrivers(): Promise<UninstalledDrivers> {
  return (await import("./uninstalled/index.ts")).uninstalled;
}

/** Each finding is a line with its place. */
export function logFindings(log: Log, findings: readonly Finding[]): void {
  for (const finding of findings) {
    if (finding.severity === "error") log.error({}, formatFinding(finding));
    else log.warn({}, formatFinding(finding));
  }
}

/**
 * Calls `take` with each configuration that comes into force; findings in the files are logged. A file that cannot be used
 * changes nothing: the former configuration stays. The caller closes what it returns.
 */
export function followConfig(
  { machine, config, files, drivers, log, front }: Omit<RoleParts, "tree">,
  take: (config: Config) => Promise<unknown>,
): ConfigWatch {
  const { clock } = machine;
  const { counters } = front;
  // Whether the files were refused last, so that their return to what is in force is worth a line.
  let isRefused = false;
  const note = (result: "loaded" | "refused" | "failed") => {
    counters.add("config.reloads", 1, { result });
    counters.level("config.last_reload_successful", result === "loaded" ? 1 : 0, {});
    if (result === "loaded") counters.level("config.last_reload_success", clock.now() / 1000, {});
  };
  return new ConfigWatch({
    ...files,
    env: machine.env,
    drivers,
    clock,
    config,
    onRead: (usable, modified) => {
      note(usable ? "loaded" : "refused");
      if (modified !== undefined) counters.level("config.file_modified", modified / 1000, {});
    },
    onChange: (next, diff, findings) => {
      isRefused = false;
      log.setLevels(next.logLevels);
      logFindings(log, findings);
      log.info(changesIn(diff), "the configuration changed");
      if (diff.zookeeperNeedsRestart || diff.zookeeperServersChanged)
        log.warn({}, "changes of zookeeper-servers, -tls and -timeout take effect at the next start");
      if (diff.webappNeedsRestart)
        log.warn({}, "changes of webapp take effect at the next start, but for those of webapp.oidc");
      // Before anything of it is used: a listener that must not be reached by new nodes is closed first.
      front.reconfigured(next);
      // Not awaited: a reload does not wait for the clouds of the one before it.
      take(next).catch((error: unknown) => {
        note("failed");
        log.error({ error: messageOf(error) }, "cannot apply the changed configuration");
      });
    },
    onSame: (findings) => {
      logFindings(log, findings);
      log.info(
        { path: files.path },
        isRefused
          ? "the configuration can be used again, and is the one in force"
          : "the configuration did not change",
      );
      isRefused = false;
    },
    onError: (findings) => {
      isRefused = true;
      logFindings(log, findings);
      log.error({ path: files.path }, "cannot use the changed configuration; the former one stays in force");
    },
  });
}

/** Only what did change: for the line in the log. */
function changesIn({ any: _, ...diff }: ConfigDiff): object {
  const changed = Object.entries(diff).filter(([, value]) =>
    Array.isArray(value) ? value.length > 0 : value,
  );
  return Object.fromEntries(changed);
}

/**
 * The part of the configuration that a launcher works by. Not the names of its own files, servers and listeners: those are the
 * process's.
 */
export function launcherConfig(config: Config): LauncherConfig {
  const { providers, labels, tenantLimits, maxHoldAgeMs, failedLaunchesPerHour } = config;
  return { providers, labels, tenantLimits, maxHoldAgeMs, failedLaunchesPerHour };
}
