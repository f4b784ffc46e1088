import type { DriverRegistry } from "@nodeyard/config";
import { cloudConfig, Key } from "@nodeyard/driver";

/** What providers of all drivers have: pools with limits and labels. Other keys are ignored. */
const anyConfig = cloudConfig(
  "any",
  { provider: {}, pool: { limits: Key.limits(Key.cloudLimits) }, label: {} },
  { label: ({ own }) => ({ hostKeyChecking: false, own }) },
);

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
