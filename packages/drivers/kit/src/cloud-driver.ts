import type { MapError } from "./calls.ts";
import { type Cloud, cloudProvider } from "./cloud-provider.ts";
import type { ProviderConfig } from "./config/compiled.ts";
import type { DriverConfig } from "./config/driver-config.ts";
import type { Driver, DriverContext } from "./contract.ts";
import { type Account, SharedAccounts } from "./limits/shared-accounts.ts";
import { type MachineTable, NodeMachines } from "./node-machines.ts";
import type { Around } from "./sign-in.ts";
import type { OpenFile } from "./transfer.ts";
import type { Wire } from "./wire.ts";

/** What a driver uses of its host (`usualHost`); tests provide their own. */
export interface CloudHost {
  /** Where credentials are read: at each login, so that changes take effect. */
  readonly around: Around;
  /** Opens the connections of one credential. */
  connect(): Pick<Wire, "send" | "close">;
  readonly openFile: OpenFile;
}

/** The plan of a provider: its account, which it may share, and the cloud as that account sees it. */
export interface CloudPlan<A extends Account, T, Part> {
  /** As in `SharedAccounts.share`. */
  readonly key: string;
  /** The provider's own limit: least time between two calls of the account, milliseconds; 0, the default: none. */
  readonly intervalMs?: number;
  /** Opens the account for the first provider that uses it. The last one closes it. */
  account(): A;
  /** No I/O. */
  cloud(account: A): Cloud<T, Part, NodeMachines<T> | MachineTable<T>>;
}

/**
 * The driver of a cloud whose machines carry metadata. Providers with one credential share connections, lists and the rate limit. `plan` may read
 * files, and throws for credentials that cannot be used; `closed` aborts when the provider is closed.
 */
export function cloudDriver<Config extends ProviderConfig, A extends Account, T, Part = undefined>(
  {
    name,
    config: table,
    mapError,
  }: {
    name: string;
    config: DriverConfig<Config>;
    mapError: MapError;
  },
  plan: (config: Config, context: DriverContext, closed: AbortSignal) => CloudPlan<A, T, Part>,
): Driver<Config> {
  const accounts = new SharedAccounts<A>();
  return {
    ...{ name, contract: 1, config: table },
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    open: (config, context) =>
      cloudProvider<T, Part>(config, mapError, (closed) => {
        const { key, intervalMs = 0, account, cloud } = plan(config, context, closed);
        const share = accounts.share(context.clock, key, intervalMs, account);
        const said = cloud(share.account);
        return {
          ...said,
          ...(table.typeOf && { typeOf: table.typeOf }),
          machines: nodeMachines(said.machines, config, context, closed),
          async close() {
            await said.close?.();
            await share.release();
          },
        };
      }),
  };
}

function nodeMachines<T>(
  machines: NodeMachines<T> | MachineTable<T>,
  { name: provider }: ProviderConfig,
  { clock, log }: DriverContext,
  closed: AbortSignal,
): NodeMachines<T> {
  if (machines instanceof NodeMachines) return machines;
  const { watch } = machines;
  return new NodeMachines({
    ...{ ...machines, clock, closed },
    watch: "list" in watch ? { ...watch, log, provider } : watch,
  });
}
