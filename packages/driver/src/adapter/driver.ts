import { CONTRACT } from "../check.ts";
import type { ProviderConfig } from "../config/compiled.ts";
import type { DriverConfig } from "../config/driver-config.ts";
import type { Driver } from "../contract.ts";
import { asDriverError, DriverError } from "../errors.ts";
import { RateLimiter } from "../limits/rate-limiter.ts";
import { adapterProvider } from "./provider.ts";
import type { AdapterOf } from "./types.ts";

/** What makes a driver of adapters: name, configuration, and how its state machines are driven. */
export interface AdapterDriverOptions<Config extends ProviderConfig> {
  /** What `driver:` in the configuration calls it. */
  readonly name: string;
  readonly config: DriverConfig<Config>;
  /** Makes the adapter of one provider; may connect, and may fail. */
  readonly adapter: AdapterOf<Config>;
  /** Calls per second to the cloud that `limiter` lets through. Default: no limit. */
  readonly rate?: (config: Config) => number;
  /** Between two advances of a state machine, milliseconds. Default 1,000. */
  readonly paceMs?: number;
  /** How long `listInstances` may lag behind what was made, milliseconds. Default 0. */
  readonly listLagMs?: number;
  /** What the cloud's client throws, typed. DriverErrors do not come by here. Default: everything is `fatal`. */
  mapError?(error: unknown, place: string): DriverError;
}

/** A driver of the contract, made of a state-machine adapter. */
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
