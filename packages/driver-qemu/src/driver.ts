import { Calls, type Driver, type DriverContext, DriverError, deadline } from "@nodeyard/driver";
import type { QemuProviderConfig } from "./config.ts";
import { qemuConfig } from "./config.ts";
import type { HostFolder } from "./edge/host-folder.ts";
import { mapError } from "./errors.ts";
import { QemuProvider } from "./provider.ts";

const OPEN_MS = 60_000;

type OpenHost = (
  config: QemuProviderConfig,
  context: DriverContext,
  signal: AbortSignal,
) => Promise<HostFolder>;

export function createQemuDriver(openHost: OpenHost): Driver<QemuProviderConfig> {
  return {
    name: "qemu",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true, local: true },
    config: qemuConfig,
    async open(config, context) {
      const late = () => new DriverError("timeout", `the host did not answer within ${OPEN_MS} ms`);
      const limit = deadline(context.clock, OPEN_MS, late);
      try {
        const host = await openHost(config, context, limit.signal);
        return new QemuProvider(host, config, new Calls(config.name, mapError), context);
      } catch (error) {
        throw mapError(error, `provider ${config.name}`);
      } finally {
        limit.cancel();
      }
    },
  };
}
