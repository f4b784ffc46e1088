import { CloudConfigError } from "@nodeyard/driver";
import { z } from "zod";

/** The services that the driver uses, by the names of the service types authority. Older names follow, the oldest last. */
export const SERVICES = {
  compute: ["compute"],
  network: ["network"],
  image: ["image"],
  "block-storage": ["block-storage", "volumev3", "block-store", "volume"],
} as const;

/** Services that the driver looks up in the catalog. */
export type ServiceName = keyof typeof SERVICES;

const endpoint = z.object({
  interface: z.string(),
  /** Id of the region; `region` is its older name, which keystone still sends. */
  region_id: z.string().nullish(),
  region: z.string().nullish(),
  url: z.string(),
});
type Endpoint = z.infer<typeof endpoint>;
/** The catalog of a token: services with their endpoints, one per region and interface (Identity API v3, "Service catalog"). */
export const catalogSchema = z.array(z.object({ type: z.string(), endpoints: z.array(endpoint) }));
/** The services of a token's project. */
export type Catalog = z.infer<typeof catalogSchema>;

/** How to find a cloud's services, from clouds.yaml. */
export interface ServiceLocation {
  /** Null: any region. */
  readonly region: string | null;
  /** "public", "internal", "admin"; the preferred one first. */
  readonly interfaces: readonly string[];
  /** `<service>_endpoint_override` of clouds.yaml. */
  readonly overrides: Readonly<Partial<Record<ServiceName, string>>>;
  /** `compute_default_microversion` of clouds.yaml. */
  readonly microversions: { readonly compute?: string | undefined };
}

type Wanted = Pick<ServiceLocation, "region" | "interfaces"> & { readonly service: ServiceName };

/**
 * The service's address without a trailing slash; undefined when the catalog has none in this region. A newer service type counts
 * before an older one, and then the order of the interfaces.
 */
export function endpointOf(catalog: Catalog, { service, region, interfaces }: Wanted): string | undefined {
  const here = ({ region_id, region: older }: Endpoint) => region === null || (region_id ?? older) === region;
  for (const type of SERVICES[service]) {
    const endpoints = catalog.flatMap((entry) => (entry.type === type ? entry.endpoints.filter(here) : []));
    const found = interfaces.flatMap((face) => endpoints.filter((one) => one.interface === face));
    if (found.length > 0) return found[0]!.url.replace(/\/+$/, "");
  }
  return undefined;
}

/** The error for a service that is missing in the catalog; it lists what the catalog has. */
export function missing(catalog: Catalog, { service, region, interfaces }: Wanted): CloudConfigError {
  const types: readonly string[] = SERVICES[service];
  const endpoints = catalog.filter(({ type }) => types.includes(type)).flatMap((entry) => entry.endpoints);
  const regions = [...new Set(endpoints.map((one) => one.region_id ?? one.region ?? "none"))].sort();
  const where = region === null ? "" : ` in region ${region}`;
  const faces = [...new Set(endpoints.map((one) => one.interface))].join(", ");
  const there =
    endpoints.length === 0
      ? `it lists ${catalog.map(({ type }) => type).join(", ") || "nothing"}`
      : `it is in ${regions.join(", ")} with interfaces ${faces}`;
  return new CloudConfigError(
    `the cloud's catalog has no ${interfaces.join(" or ")} endpoint of service ${service}${where}: ${there}`,
  );
}
