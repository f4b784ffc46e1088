import { type Config, type ConfigDiff, ConfigWatch } from "@nodeyard/config";
import { messageOf } from "@nodeyard/runtime";
import { logFindings } from "./open-config.ts";
import type { RoleParts } from "./role-parts.ts";

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
