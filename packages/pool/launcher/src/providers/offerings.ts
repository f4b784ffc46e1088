import {
  DriverError,
  exceeded,
  type LabelConfig,
  type LabelOffering,
  oddAmount,
  type Provider,
  type ProviderConfig,
  type Resources,
} from "@nodeyard/driver";
import { messageOf } from "@nodeyard/runtime";
import { type LocalOffering, leastOf } from "@nodeyard/scheduler";
import type { OpenProvider } from "../handles.ts";
import { priceOf, typeOf, zoneOfPrices } from "./prices.ts";
import type { CloudHandles } from "./providers.ts";

/** A label as it is bought by one of its offerings; undefined: it has none of that type in that zone (any more). */
export function labelBoughtAs(
  open: Pick<OpenProvider, "provider">,
  label: LabelConfig,
  type: string | undefined,
  az: string | null,
): LabelConfig | undefined {
  if (type === undefined) return label;
  return label.offerings?.find(
    ({ zone, label: one }) => (zone === null || zone === az) && typeOf(open, one) === type,
  )?.label;
}

/** What one node of a label takes, and, where the label lists them, what it may be bought as. Rejects with kind "configuration" if none can be. */
export async function needOf(
  open: OpenProvider,
  pool: ProviderConfig["pools"][number],
  label: LabelConfig,
  limits: Resources,
  handles: CloudHandles,
  signal: AbortSignal,
): Promise<{ readonly need: Resources; readonly offerings?: readonly LocalOffering[] }> {
  if (label.offerings === undefined) return { need: await need(open.provider, label, signal) };
  const offerings = await offeringsOf(open, pool, label.offerings, limits, handles, signal);
  const needs = offerings.filter(({ unavailable }) => unavailable === undefined).map(({ need }) => need);
  return { need: leastOf(needs)!, offerings };
}

/**
 * What a label may be bought as, with what it costs now. One that can never be had is kept with its reason; when none can, the reason of the
 * first rejects.
 */
async function offeringsOf(
  open: OpenProvider,
  pool: ProviderConfig["pools"][number],
  offerings: readonly LabelOffering[],
  limits: Resources,
  handles: CloudHandles,
  signal: AbortSignal,
): Promise<readonly LocalOffering[]> {
  const { name: provider } = open.config;
  let currency: string | undefined;
  const all: LocalOffering[] = [];
  for (const { label, zone, weight, maxPrice } of offerings) {
    const type = typeOf(open, label);
    const known = await priceOf(handles, open, type, zone ?? zoneOfPrices(pool), signal);
    currency ??= known?.currency;
    // Amounts of two currencies cannot be compared.
    const price = known !== null && known.currency === currency ? known.perHour : null;
    const offering = { type, zone, weight, price, maxPrice };
    try {
      const taken = await need(open.provider, label, signal);
      const ofCloud = pool.ignoreProviderQuota === true ? {} : limits;
      const over = exceeded(pool.limits, {}, taken) ?? exceeded(ofCloud, {}, taken);
      if (over !== undefined)
        throw new DriverError("configuration", `${type}: one node exceeds the limit of ${over}`);
      all.push({ ...offering, need: taken });
    } catch (error) {
      if ((error as { kind?: string }).kind !== "configuration") throw error;
      const unavailable = messageOf(error);
      all.push({ ...offering, need: { instances: 1 }, unavailable });
      handles.log.error(
        { provider, label: label.name, type, error: unavailable },
        "an offering can never work",
      );
    }
  }
  if (all.every(({ unavailable }) => unavailable !== undefined))
    throw new DriverError("configuration", all[0]!.unavailable!);
  return all;
}

/** Every machine takes one instance, whether the driver says so or not. */
async function need(
  provider: Provider,
  label: Parameters<Provider["need"]>[0],
  signal: AbortSignal,
): Promise<Resources> {
  const need = { instances: 1, ...(await provider.need(label, signal)) };
  const odd = oddAmount(need);
  if (odd === undefined) return need;
  throw new DriverError(
    "configuration",
    `label ${label.name} takes ${odd}, which no limit can count; correct its amounts`,
  );
}
