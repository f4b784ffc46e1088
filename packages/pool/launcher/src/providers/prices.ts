import { DriverError, type LabelConfig, type Price, type ProviderConfig } from "@nodeyard/driver";
import { deadline, messageOf } from "@nodeyard/runtime";
import type { OpenProvider } from "../handles.ts";
import type { RecordHandles } from "../held-records.ts";

/** A price is worth no more of a launch than this, milliseconds. */
const ANSWER_MS = 10_000;

/** What machines of a label are bought as; their label where the driver does not say it. The key of offerings and of price lists. */
export function typeOf({ provider }: Pick<OpenProvider, "provider">, label: LabelConfig): string {
  return provider.offers?.types?.of(label) ?? label.name;
}

/**
 * What an hour of a type costs: as the file says, else as the cloud says, else null. Never rejects but with the signal's reason: what is
 * not known of a price stops no launch.
 */
export async function priceOf(
  { clock, log }: Pick<RecordHandles, "clock" | "log">,
  { config, provider }: Pick<OpenProvider, "config" | "provider">,
  type: string,
  az: string | null,
  parent: AbortSignal,
): Promise<Price | null> {
  const listed = config.prices?.perHour[type];
  if (config.prices !== undefined && listed !== undefined)
    return { perHour: listed, currency: config.prices.currency };
  const { prices } = provider.offers ?? {};
  if (prices === undefined) return null;
  const late = () => new DriverError("timeout", `${config.name}: no price within ${ANSWER_MS} ms`);
  using limit = deadline(clock, ANSWER_MS, late, parent);
  try {
    return await prices.of(type, az, limit.signal);
  } catch (error) {
    parent.throwIfAborted();
    const facts = { provider: config.name, type, az, error: messageOf(error) };
    log.warn(facts, "cannot read a price; what nodes cost is not known");
    return null;
  }
}

/** The only zone of a pool, for the price of what may be bought in any of its zones; null, the most expensive one, if it has several. */
export function zoneOfPrices({ availabilityZones: zones }: ProviderConfig["pools"][number]): string | null {
  return zones.length === 1 ? zones[0]! : null;
}

/** By label; one with several offerings has a price for each of them. What the cloud lets choose among several types has a price of its own with each launch. */
export async function labelPrices(
  open: OpenProvider,
  pool: ProviderConfig["pools"][number],
  handles: Pick<RecordHandles, "clock" | "log">,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Price>> {
  const az = zoneOfPrices(pool);
  const prices = await Promise.all(
    [...pool.labels.values()].map(async (label) => {
      if (label.offerings !== undefined) return [];
      const price = await priceOf(handles, open, typeOf(open, label), az, signal);
      return price === null ? [] : [[label.name, price] as const];
    }),
  );
  return new Map(prices.flat());
}

/** What an hour of several nodes costs together; null where a price is missing, or one is in another currency. Empty: null. */
export function sumOf(prices: readonly (Price | undefined)[]): Price | null {
  const [first] = prices;
  if (first === undefined) return null;
  const { currency } = first;
  let perHour = 0;
  for (const price of prices) {
    if (price?.currency !== currency) return null;
    perHour += price.perHour;
  }
  return { perHour, currency };
}
