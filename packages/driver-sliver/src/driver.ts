import { Calls, type Driver, type DriverContext, DriverError, deadline } from "@nodeyard/driver";
import type { SigningKeys, SliverClient } from "@nodeyard/sliver-protocol";
import { sliverConfig } from "./config/index.ts";
import { mapError } from "./errors.ts";
import type { MachineAt, SliverProviderConfig } from "./own.ts";
import { SliverProvider } from "./provider.ts";
import { SliverHost } from "./sliver-host.ts";
import { SliverHosts } from "./sliver-hosts.ts";

const OPEN_MS = 30_000;

/** What the driver has of this host. */
export interface Ways {
  readonly connect: (machine: MachineAt) => SliverClient;
  /** Throws KeyFileError. */
  readonly readKeys: (path: string) => SigningKeys;
}

export function createSliverDriver({ connect, readKeys }: Ways): Driver<SliverProviderConfig> {
  return {
    name: "sliver",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true, local: true },
    config: sliverConfig,
    async open(config, context) {
      const late = () => new DriverError("timeout", `the machines did not answer within ${OPEN_MS} ms`);
      const limit = deadline(context.clock, OPEN_MS, late);
      const calls = new Calls(config.name, mapError);
      try {
        const hosts = hostsOf(config, context, calls, { connect, readKeys });
        await hosts.open(limit.signal);
        return new SliverProvider(hosts, config, calls, context.clock);
      } catch (error) {
        throw limit.signal.aborted ? limit.signal.reason : mapError(error, `provider ${config.name}`);
      } finally {
        limit.cancel();
      }
    },
  };
}

function hostsOf(
  { own }: SliverProviderConfig,
  { clock, random, log }: DriverContext,
  { closed }: Calls,
  { connect, readKeys }: Ways,
): SliverHosts {
  const keys = readKeys(own.signingKeys);
  const { epoch } = own;
  const hosts = own.machines.map((machine) => {
    const { name, address } = machine;
    return new SliverHost({ name, address, client: connect(machine), keys, epoch, clock, random, closed });
  });
  return new SliverHosts(hosts, log);
}
