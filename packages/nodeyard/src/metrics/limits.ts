import { type Gauge, gaugeOf } from "./gauges.ts";

/** The limits of a configuration; what is infinite is none, and no figure of any system is "inf". */
export interface Limits {
  /** By provider, those of its pools. */
  readonly maxServers: ReadonlyMap<string, readonly number[]>;
  /** By tenant and resource. */
  readonly tenants: ReadonlyMap<string, Readonly<Record<string, number>>>;
}

export function limitGauges({ maxServers, tenants }: Limits): readonly Gauge[] {
  const sums = [...maxServers].map(([provider, pools]) => {
    const sum = pools.reduce((so, far) => so + far, 0);
    return gaugeOf("provider_max_servers", sum, provider);
  });
  const limits = [...tenants].flatMap(([tenant, resources]) =>
    Object.entries(resources).map(([resource, limit]) => gaugeOf("tenant_limit", limit, tenant, resource)),
  );
  return [...sums, ...limits].filter(({ value }) => Number.isFinite(value));
}
