import { DriverError, type Price, type Prices } from "@nodeyard/driver";
import type { Site } from "./account.ts";

/** Milliseconds until prices are read again: the price list changes a few times a year, spot prices change slowly. */
const LIST_MS = 86_400_000;
const SPOT_MS = 600_000;

/** Prices by zone; the null key holds the list price, which is the same in every zone. */
type Zoned = ReadonlyMap<string | null, Price>;

/** Price per hour of Linux without a licence, volumes, addresses and traffic: of the Price List API, or of EC2's newest spot price in a zone. */
export function pricesOf({ aws, lookups: { known }, clock }: Site): Prices {
  /** The list price of a type, or of a host of its family. Empty when AWS sells none in the region. */
  async function listPrice(type: string, isHost: boolean, regionCode: string, signal: AbortSignal) {
    // Hosts are sold by family, without the size.
    const wanted = isHost
      ? { productFamily: "Dedicated Host", instanceType: type.split(".", 1)[0]! }
      : {
          ...{ instanceType: type, tenancy: "Shared", capacitystatus: "Used" },
          ...{ operatingSystem: "Linux", preInstalledSw: "NA", licenseModel: "No License required" },
        };
    const matching = ([Field, Value]: [string, string]) => ({ Type: "TERM_MATCH" as const, Field, Value });
    const Filters = Object.entries({ regionCode, ...wanted }).map(matching);
    // The Price List API has endpoints in a few regions only; each has the prices of all regions of its partition.
    const home = aws.in(regionCode.startsWith("cn-") ? "cn-northwest-1" : "us-east-1");
    const request = { ServiceCode: "AmazonEC2", Filters };
    const products = await home.list("pricing.getProducts", "PriceList", request, signal);
    const [price] = products.flatMap((product) => hourly(String(product)));
    return new Map<string | null, Price>(price === undefined ? [] : [[null, price]]);
  }

  /** The present spot price in each zone. */
  async function marketPrices(type: string, signal: AbortSignal): Promise<Zoned> {
    const request = {
      InstanceTypes: [type as never],
      ProductDescriptions: ["Linux/UNIX"],
      // With the present time as start, EC2 answers with the price that is in force in each zone.
      StartTime: new Date(clock.now()),
    };
    const history = await aws.list("ec2.describeSpotPriceHistory", "SpotPriceHistory", request, signal);
    // The oldest first: the newest entry of a zone overwrites the others in the Map.
    const newest = history.toSorted((a, b) => Number(a.Timestamp) - Number(b.Timestamp));
    return new Map(newest.map((one) => [one.AvailabilityZone ?? null, priceOf(one.SpotPrice, "USD")]));
  }

  return {
    /** Null: no price is listed, or a fleet has not chosen its type yet. Rejects when AWS cannot be asked. */
    async of(type, az, signal) {
      // The texts of `machineType` are the keys of `prices` in nodepool.yaml too, so they are parsed rather than passed in parts.
      const [name = "", ...marks] = type.split(", ");
      // A fleet's type is several names with slashes until EC2 has chosen one.
      if (!/^[\w-]+\.[\w-]+$/.test(name)) return null;
      const region = await aws.region(signal);
      const isHost = marks.includes("dedicated host");
      const how = marks.includes("spot")
        ? { freshMs: SPOT_MS, load: (own: AbortSignal) => marketPrices(name, own) }
        : { freshMs: LIST_MS, load: (own: AbortSignal) => listPrice(name, isHost, region, own) };
      const prices = await known.get(`price of ${region} ${type}`, how, signal);
      const exact = prices.get(az) ?? prices.get(null);
      if (exact !== undefined || az !== null) return exact ?? null;
      const [dearest = null] = [...prices.values()].sort((a, b) => b.perHour - a.perHour);
      return dearest;
    },
  };
}

type Keyed<T> = Readonly<Record<string, T>>;

/** On-demand price of a product (Price List API, "Reading the service price list file"), keyed by ids. By currency: USD, or CNY in China. */
function hourly(product: string): readonly Price[] {
  type Rate = { readonly unit?: string; readonly pricePerUnit?: Keyed<string> };
  const offers: Keyed<{ readonly priceDimensions?: Keyed<Rate> }> = JSON.parse(product).terms?.OnDemand ?? {};
  return Object.values(offers)
    .flatMap(({ priceDimensions = {} }) => Object.values(priceDimensions))
    .filter(({ unit }) => unit === "Hrs")
    .flatMap(({ pricePerUnit = {} }) => Object.entries(pricePerUnit))
    .map(([currency, text]) => priceOf(text, currency));
}

/** A price in AWS's decimal text. Throws for anything else: NaN would make a node's cost unreadable for good. */
function priceOf(text: string | undefined, currency: string): Price {
  const perHour = Number(text);
  if (text !== undefined && Number.isFinite(perHour)) return { perHour, currency };
  throw new DriverError("transient", `AWS lists a price that is no number: ${text}`);
}
