import type { Gauge } from "../gauges.ts";
import { keyPart, type StatsdSample } from "./lines.ts";

/** Key of a gauge in the old hierarchy; undefined: it has none there. `host` is this machine's. */
export function gaugeKey({ name, labels }: Gauge, host: string): string | undefined {
  const part = (label: string) => keyPart(labels[label] ?? "");
  switch (name) {
    case "nodes":
      return `nodepool.nodes.${part("state")}`;
    case "provider_nodes":
      return `nodepool.provider.${part("provider")}.nodes.${part("state")}`;
    case "label_nodes":
      return `nodepool.label.${part("label")}.nodes.${part("state")}`;
    case "pool_addressable_requests":
      return `nodepool.provider.${part("provider")}.pool.${part("pool")}.addressable_requests`;
    case "provider_max_servers":
      return `nodepool.provider.${part("provider")}.max_servers`;
    case "tenant_limit":
      return `nodepool.tenant_limits.${part("tenant")}.${part("resource")}`;
    case "image_build_requested":
      return `nodepool.image.${part("image")}.image_build_requests`;
    case "image_last_build_timestamp_seconds":
      return `nodepool.image.${part("image")}.last_ready_build`;
    case "image_last_upload_timestamp_seconds":
      return `nodepool.image.${part("image")}.provider.${part("provider")}.last_ready_upload`;
    case "tree_calls":
      return `nodepool.launcher.${keyPart(host)}.zk.client.connection_queue`;
    case "tree_reads_pending":
      return `nodepool.launcher.${keyPart(host)}.zk.${part("cache")}_cache.${part("queue")}_queue`;
    case "workers":
      return `nodepool.builder.${keyPart(host)}.${part("kind")}_workers`;
    default:
      return undefined;
  }
}

/** Those that have a place in the old hierarchy. */
export function gaugeSamples(gauges: readonly Gauge[], host: string): readonly StatsdSample[] {
  return gauges.flatMap((gauge) => {
    const key = gaugeKey(gauge, host);
    return key === undefined ? [] : [{ key, type: "g" as const, value: gauge.value }];
  });
}
