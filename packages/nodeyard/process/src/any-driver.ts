import type { DriverRegistry } from "@nodeyard/config";
import {
  cloudLimits,
  commonOf,
  compileLabels,
  compilePools,
  driverConfig,
  entries,
  poolKeys,
  section,
  text,
} from "@nodeyard/driver";

/** What providers of all drivers have: pools with limits and labels. Other keys are ignored. */
const table = {
  pools: entries(
    section({
      ...poolKeys(cloudLimits),
      labels: entries(section({ name: text("A top-level label.", { needed: true }) }), "Offered labels."),
    }),
    "Pools.",
  ),
};

/** Values stand where a launcher would need them; nothing is launched by them. */
const anyConfig = driverConfig("any", table, (provider, context) => ({
  ...commonOf({ ...provider, launchTimeoutMs: 3_600_000, bootTimeoutMs: 60_000, launchAttempts: 3 }),
  pools: compilePools(provider, (pool) => ({
    labels: compileLabels(pool, context, () => ({
      hostKeyChecking: false,
      connection: { username: null, pythonPath: null, shellType: null, type: "ssh", port: 22 },
      image: null,
      own: null,
    })),
    own: null,
  })),
  own: null,
}));

/**
 * The installed drivers; for other names a driver that reads only the keys of all providers. For processes that launch nothing:
 * commands, plans, the doctor. A driver that is broken counts as not installed.
 */
export function withAnyDriver(installed: DriverRegistry): DriverRegistry {
  return {
    get(name) {
      const found = installed.get(name);
      return found !== undefined && "load" in found ? found : anyConfig;
    },
    names: () => installed.names(),
  };
}
