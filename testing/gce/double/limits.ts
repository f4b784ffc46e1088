import type { GceSettings } from "./settings.ts";
import { type GceSite, metricOf, regionOf } from "./site.ts";

/** Loose, as the discovery documents judge what goes in and out. */
export type Json = Record<string, unknown>;
export interface Disk extends Json {
  name: string;
  zone: string;
  sizeGb: string;
  type: string;
  users: string[];
}
export interface Instance extends Json {
  name: string;
  zone: string;
  status: string;
  machineType: string;
  metadata: { items?: { key: string; value: string }[]; fingerprint?: string; kind?: string };
  labels?: Record<string, string>;
  scheduling: Json;
  disks: (Json & { source: string; autoDelete?: boolean })[];
}
export interface OperationError {
  readonly code: string;
  readonly message: string;
  readonly errorDetails?: readonly object[];
}

export const pathOf = (link: string) => link.slice(link.indexOf("projects/"));
export const last = (path: string) => path.split("/").at(-1) ?? "";

/** What a project may have at once: by its quotas, and by what Google has of each type in a zone. */
export class Limits {
  readonly #site: GceSite;
  readonly #settings: () => GceSettings;
  readonly #instances: ReadonlyMap<string, Instance>;
  readonly #disks: ReadonlyMap<string, Disk>;

  constructor(
    site: GceSite,
    settings: () => GceSettings,
    instances: ReadonlyMap<string, Instance>,
    disks: ReadonlyMap<string, Disk>,
  ) {
    this.#site = site;
    this.#settings = settings;
    this.#instances = instances;
    this.#disks = disks;
  }

  overQuota(zone: string, wanted: Instance, size: number, diskType: string): OperationError | undefined {
    const region = regionOf(zone);
    const type = last(wanted.machineType);
    const cpus = this.#site.machineTypes[type]!.guestCpus;
    const metric = metricOf(type, wanted.scheduling?.provisioningModel === "SPOT", this.#settings().quotas);
    const more: Record<string, number> = {
      ...{ [metric]: cpus, CPUS_ALL_REGIONS: cpus, INSTANCES: 1 },
      [diskType === "pd-standard" ? "DISKS_TOTAL_GB" : "SSD_TOTAL_GB"]: size,
    };
    for (const [name, amount] of Object.entries(more)) {
      const { usage, limit } = this.quota(name, region);
      if (usage + amount <= limit) continue;
      const where = name === "CPUS_ALL_REGIONS" ? "globally" : `in region ${region}`;
      const quotaInfo = {
        metricName: `compute.googleapis.com/${name.toLowerCase()}`,
        limitName: name,
        limit,
      };
      return {
        code: "QUOTA_EXCEEDED",
        message: `Quota '${name}' exceeded.  Limit: ${limit.toFixed(1)} ${where}.`,
        errorDetails: [{ quotaInfo }],
      };
    }
    return undefined;
  }

  withoutRoom(zone: string, wanted: Instance): OperationError | undefined {
    const type = last(wanted.machineType);
    const isSpot = wanted.scheduling?.provisioningModel === "SPOT";
    const isFull = (at: string) => {
      const limit = this.#settings().capacity.find(
        (one) => (one.zone ?? at) === at && (one.type ?? type) === type && (one.spot ?? isSpot) === isSpot,
      );
      const there = [...this.#instances.values()].filter(
        (one) => last(one.zone) === at && last(one.machineType) === type && one.status !== "SUSPENDED",
      );
      return limit !== undefined && there.length >= limit.most;
    };
    if (!isFull(zone)) return undefined;
    const region = regionOf(zone);
    const others = this.#site.zones.filter((one) => regionOf(one) === region && one !== zone && !isFull(one));
    const metadatas = { vmType: type, zone, zonesAvailable: others.join(","), attachment: "" };
    const code = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS";
    return {
      code,
      message: `The zone 'projects/${this.#site.project}/zones/${zone}' does not have enough resources available to fulfill the request.`,
      errorDetails: [
        { errorInfo: { reason: "resource_availability", domain: "compute.googleapis.com", metadatas } },
      ],
    };
  }

  quota(metric: string, region?: string) {
    const used = [...this.#instances.values()].filter(
      ({ zone }) => region === undefined || metric === "CPUS_ALL_REGIONS" || regionOf(last(zone)) === region,
    );
    const { quotas } = this.#settings();
    const cpus = (one: Instance) => this.#site.machineTypes[last(one.machineType)]!.guestCpus;
    const isOf = (one: Instance) =>
      metricOf(last(one.machineType), one.scheduling.provisioningModel === "SPOT", quotas) === metric;
    const sizes = (...types: string[]) =>
      [...this.#disks.values()]
        .filter(
          ({ type, zone }) =>
            types.includes(last(type)) && (region === undefined || regionOf(last(zone)) === region),
        )
        .reduce((sum, { sizeGb }) => sum + Number(sizeGb), 0);
    const usage =
      metric === "INSTANCES"
        ? used.length
        : metric === "CPUS_ALL_REGIONS"
          ? used.reduce((sum, one) => sum + cpus(one), 0)
          : metric === "DISKS_TOTAL_GB"
            ? sizes("pd-standard")
            : metric === "SSD_TOTAL_GB"
              ? sizes("pd-ssd", "pd-balanced")
              : used.filter(isOf).reduce((sum, one) => sum + cpus(one), 0);
    return { metric, limit: quotas[metric] ?? Number.MAX_SAFE_INTEGER, usage };
  }
}
