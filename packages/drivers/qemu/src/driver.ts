import { type Driver, DriverError, deadline } from "@nodeyard/driver";
import { type QemuProviderConfig, qemuConfig } from "./config.ts";
import { openHostFolder } from "./edge/host-folder.ts";
import { mapError } from "./errors.ts";
import { qemuProvider } from "./provider.ts";

/** Time limit of opening, milliseconds: programs are started, rules loaded, and guests of dead launchers ended. */
const OPEN_MS = 60_000;

/** The `qemu` driver: virtual machines on this host. `local`: its machines may reach the host's loopback. */
export const qemuDriver: Driver<QemuProviderConfig> = {
  name: "qemu",
  contract: 1,
  capabilities: { launches: true, inventory: false, probes: false, tags: true, local: true },
  config: qemuConfig,
  async open(config, context) {
    const late = () => new DriverError("timeout", `the host did not answer within ${OPEN_MS} ms`);
    using limit = deadline(context.clock, OPEN_MS, late);
    try {
      return qemuProvider(await openHostFolder(config, context, limit.signal));
    } catch (error) {
      throw mapError(error, `provider ${config.name}`);
    }
  },
};
