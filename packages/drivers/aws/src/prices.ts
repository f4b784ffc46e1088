import { type Clock, DriverError, type Price, SharedValues } from "@nodeyard/driver";
import { type Aws, allPages } from "./client/index.ts";

/** Milliseconds until prices are read again: the price list changes a few times a year, spot prices change slowly. */
const LIST_MS = 86_400_000;
const SPOT_MS = 600_000;

/** Prices by zone; the null key holds the list price, which is the same in every zone. */
type Zoned = ReadonlyMap<string | null, Price>;

/**
 * Price per hour of Linux without a licence. On-demand and host prices come from the Price List API, spot prices from EC2's spot price
 * history, whose newest entry of each zone is the current price. Volumes, addresses and traffic are not included.
 */
export class Prices {
  readonly #aws: Aws;
  readonly #clock: Clock;
  readonly #known: SharedValues<Zoned>;

  constructor(aws: Aws, clock: Clock) {
    this.#aws = aws;
    this.#clock = clock;
    this.#known = new SharedValues(clock);
  }

  /**
   * The price of a type, as returned by `machineType`. Null: no price is listed, or a fleet has not chosen its type yet. With `az` null
   * the most expensive zone counts. Rejects when AWS cannot be asked; the program logs that and goes on without a price.
   */
  async of(type: string, az: string | null, signal: AbortSignal): Promise<Price | null> {
    // The texts of `machineType` are the keys of `prices` in nodepool.yaml too, so they are parsed rather than passed in parts.
    const [name = "", ...marks] = type.split(", ");
    // A fleet's type is several names with slashes until EC2 has chosen one.
    if (!/^[\w-]+\.[\w-]+$/.test(name)) return null;
    const region = await this.#aws.region(signal);
    const spot = marks.includes("spot");
    const load = (own: AbortSignal) =>
      spot ? this.#market(name, own) : this.#list(name, marks.includes("dedicated host"), region, own);
    const age = spot ? SPOT_MS : LIST_MS;
    const how = { load, freshMs: age, staleMs: age };
    const prices = await this.#known.get(`price of ${region} ${type}`, how, signal);
    const exact = prices.get(az) ?? prices.get(null);
    if (exact !== undefined || az !== null) return exact ?? null;
    const [first = null, ...others] = prices.values();
    return others.reduce<Price | null>((most, one) => (one.perHour > most!.perHour ? one : most), first);
  }

  close(): void {
    this.#known.close();
  }

  /** The list price of a type, or of a host of its family. Empty when AWS sells none in the region. */
  async #list(type: string, host: boolean, region: string, signal: AbortSignal): Promise<Zoned> {
    // Hosts are sold by family, without the size.
    const wanted = host
      ? { productFamily: "Dedicated Host", instanceType: type.split(".", 1)[0]! }
      : {
          ...{ instanceType: type, tenancy: "Shared", capacitystatus: "Used" },
          ...{ operatingSystem: "Linux", preInstalledSw: "NA", licenseModel: "No License required" },
        };
    const Filters = Object.entries({ regionCode: region, ...wanted }).map(([Field, Value]) => ({
      Type: "TERM_MATCH" as const,
      Field,
      Value,
    }));
    // The Price List API has endpoints in a few regions only; each has the prices of all regions of its partition.
    const home = this.#aws.in(region.startsWith("cn-") ? "cn-northwest-1" : "us-east-1");
    const products = await allPages(
      (token) =>
        home.pricing(
          (pricing, to) => pricing.getProducts({ ServiceCode: "AmazonEC2", Filters, ...token }, to),
          signal,
        ),
      ({ PriceList }) => PriceList,
    );
    const [price] = products.flatMap((product) => hourly(String(product)));
    return new Map(price === undefined ? [] : [[null, price]]);
  }

  /** The present spot price in each zone. */
  async #market(type: string, signal: AbortSignal): Promise<Zoned> {
    const request = {
      InstanceTypes: [type as never],
      ProductDescriptions: ["Linux/UNIX"],
      // With the present time as start, EC2 answers with the price that is in force in each zone.
      StartTime: new Date(this.#clock.now()),
    };
    const history = await allPages(
      (token) =>
        this.#aws.ec2((ec2, to) => ec2.describeSpotPriceHistory({ ...request, ...token }, to), signal),
      ({ SpotPriceHistory }) => SpotPriceHistory,
    );
    // The oldest first: the newest entry of a zone overwrites the others in the Map.
    const newest = history.toSorted((a, b) => Number(a.Timestamp) - Number(b.Timestamp));
    return new Map(
      newest.map(({ AvailabilityZone: zone = null, SpotPrice }) => [
        zone,
        { perHour: amount(SpotPrice), currency: "USD" },
      ]),
    );
  }
}

/** The fields of a product of the price list that are read. Its keys are ids of offers and rates. */
interface Product {
  readonly terms?: {
    readonly OnDemand?: Readonly<
      Record<string, { readonly priceDimensions?: Readonly<Record<string, Dimension>> }>
    >;
  };
}

/** A rate. `pricePerUnit` is by currency: USD, or CNY in China. */
interface Dimension {
  readonly unit?: string;
  readonly pricePerUnit?: Readonly<Record<string, string>>;
}

/** On-demand price of a product (Price List API, "Reading the service price list file"). */
function hourly(product: string): readonly Price[] {
  const { terms } = JSON.parse(product) as Product;
  const dimensions = Object.values(terms?.OnDemand ?? {}).flatMap(({ priceDimensions }) =>
    Object.values(priceDimensions ?? {}),
  );
  return dimensions
    .filter(({ unit }) => unit === "Hrs")
    .flatMap(({ pricePerUnit = {} }) =>
      Object.entries(pricePerUnit).map(([currency, text]) => ({ perHour: amount(text), currency })),
    );
}

/** A price in AWS's decimal text. Throws for anything else: NaN would make a node's cost unreadable for good. */
function amount(text: string | undefined): number {
  const value = Number(text);
  if (text !== undefined && Number.isFinite(value)) return value;
  throw new DriverError("transient", `AWS lists a price that is no number: ${text}`);
}
