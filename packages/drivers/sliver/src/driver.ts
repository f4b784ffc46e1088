import { type Driver, type DriverContext, DriverError, deadline, provide, tagOf } from "@nodeyard/driver";
import type { Edit, SigningKeys, SliverClient, SliverSpecInput } from "@nodeyard/sliver-protocol";
import type { MachineAt, SliverProviderConfig } from "./config.ts";
import { sliverConfig } from "./config.ts";
import { mapError } from "./errors.ts";
import { isIdle, setBusy } from "./lending/index.ts";
import { sliverProvider } from "./provider.ts";
import { SliverHost } from "./sliver-host.ts";
import { type Seen, SliverHosts } from "./sliver-hosts.ts";

/** Time limit for the first answers of all machines, milliseconds. */
const OPEN_MS = 30_000;

/** What the driver uses of its host. */
export interface HostAccess {
  readonly connect: (machine: MachineAt) => SliverClient;
  /** Throws KeyFileError. */
  readonly readKeys: (path: string) => SigningKeys;
}

/**
 * The driver, over the given access to machines and files. `open` rejects when no machine can be used; one that is offline is
 * opened by the first change that it gets, and one that belongs to another writer is left out.
 */
export function createSliverDriver({ connect, readKeys }: HostAccess): Driver<SliverProviderConfig> {
  return {
    name: "sliver",
    contract: 1,
    capabilities: { launches: true, inventory: false, probes: false, tags: true, local: true },
    config: sliverConfig,
    async open(config, context) {
      const late = () => new DriverError("timeout", `the machines did not answer within ${OPEN_MS} ms`);
      using limit = deadline(context.clock, OPEN_MS, late);
      const closing = new AbortController();
      const close = async () =>
        closing.abort(new DriverError("transient", `provider ${config.name} is closed`));
      try {
        const hosts = hostsOf(config, context, closing.signal, { connect, readKeys });
        const looks = context.purpose === "look";
        const seen = await (looks ? hosts.seen(limit.signal) : hosts.open(limit.signal));
        const lends = config.pools.some(({ labels }) => [...labels.values()].some(({ own }) => own.lends));
        // Labels may have lent before this configuration was loaded.
        if (!lends && !looks) await stopLending(seen, { ...context, provider: config.name }, limit.signal);
        return provide(config.name, { ...sliverProvider(hosts, config, context), close }, mapError);
      } catch (error) {
        // The time limit is the cause, whatever the aborted calls say.
        throw limit.signal.aborted ? limit.signal.reason : mapError(error, `provider ${config.name}`);
      }
    },
  };
}

/** Ends loans when the provider no longer lends: with lending off, a delivery does not wait until lent amounts are returned. */
async function stopLending(
  seen: readonly Seen[],
  { installation, provider }: { readonly installation: string; readonly provider: string },
  signal: AbortSignal,
): Promise<void> {
  const isOurs = (tags: SliverSpecInput["tags"]) => {
    const tag = tagOf(tags ?? {});
    return tag?.installation === installation && tag.provider === provider;
  };
  const idle = seen.filter(({ report }) => report.slivers.some((one) => isIdle(one) && isOurs(one.tags)));
  const wakeAll: Edit = (slivers) => {
    for (const [name, spec] of [...slivers])
      if (isIdle(spec) && isOurs(spec.tags)) slivers.set(name, setBusy(spec));
  };
  await Promise.all(idle.map(({ host }) => host.changeOfPool(wakeAll, signal)));
}

/** One host object for each machine, all with the same keys and epoch. */
function hostsOf(
  { own }: SliverProviderConfig,
  { clock, random, ...context }: DriverContext,
  closed: AbortSignal,
  { connect, readKeys }: HostAccess,
): SliverHosts {
  const keys = readKeys(own.signingKeys);
  const { epoch } = own;
  const hosts = own.machines.map((machine) => {
    const { name, address } = machine;
    return new SliverHost({ name, address, client: connect(machine), keys, epoch, clock, random, closed });
  });
  return new SliverHosts(hosts, context);
}
