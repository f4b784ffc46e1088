import { CONTRACT } from "../check.ts";
import type { ProviderConfig } from "../config/compiled.ts";
import type { DriverConfig } from "../config/driver-config.ts";
import type { Driver } from "../contract.ts";
import { asDriverError, DriverError } from "../errors.ts";
import { RateLimiter } from "../limits/rate-limiter.ts";
import { adapterProvider } from "./provider.ts";
import type { AdapterOf } from "./types.ts";

/** What makes a driver from adapters: its name, its configuration, and how it runs the state machines. */
export interface AdapterDriverOptions<Config extends ProviderConfig> {
  /** The driver's name for `driver:` in the configuration. */
  readonly name: string;
  readonly config: DriverConfig<Config>;
  /** Makes the adapter of one provider. It may connect, and may fail. */
  readonly adapter: AdapterOf<Config>;
  /** Calls per second that `limiter` allows. Default: no limit. */
  readonly rate?: (config: Config) => number;
  /** Pause between two calls of `advance`, milliseconds. Default 1,000. */
  readonly paceMs?: number;
  /** How long `listInstances` may lag behind a create, milliseconds. Default 0. */
  readonly listLagMs?: number;
  /** Translates errors of the cloud's client. It is not called for DriverErrors. Default: every error is `fatal`. */
  mapError?(error: unknown, place: string): DriverError;
}

/** Makes a driver of this contract from a state-machine adapter. */
export function adapterDriver<Config extends ProviderConfig>(
  options: AdapterDriverOptions<Config>,
): Driver<Config> {
  const { name, config, rate, paceMs = 1_000, listLagMs = 0, mapError = asDriverError } = options;
  return {
    name,
    contract: CONTRACT,
    capabilities: { launches: true, inventory: false, probes: false, tags: true },
    config,
    async open(provider, context) {
      const perSecond = rate?.(provider) ?? Number.POSITIVE_INFINITY;
      const limiter = new RateLimiter({ clock: context.clock, intervalMs: 1_000 / perSecond });
      try {
        const adapter = await options.adapter(provider, { ...context, limiter });
        const { clock } = context;
        return adapterProvider({ adapter, config: provider, clock, limiter, paceMs, listLagMs, mapError });
      } catch (error) {
        throw error instanceof DriverError ? error : mapError(error, `provider ${provider.name}`);
      }
    },
  };
}
