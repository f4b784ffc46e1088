import { IDLE_LABEL, LABEL, WAITING_TENANT } from "./records.ts";

export interface BenchConfig {
  /** `host:port` of the ZooKeeper server. */
  readonly address: string;
  /** Nodes of the label to keep ready. */
  readonly minReady?: number;
  /** Hosts of the static driver instead of the fake cloud. */
  readonly staticHosts?: number;
  /** High limits of pool and cloud: the cost of checking limits that are never reached. */
  readonly limited?: boolean;
  /** Name of the provider, where several launchers have one each. */
  readonly name?: string;
  /** Requests of `WAITING_TENANT` wait while it has a node. */
  readonly waits?: boolean;
}

/** A `nodepool.yaml`: one provider, one pool, one label, no quota in the way, machines that exist at once. */
export function launcherConfig({
  address,
  minReady = 0,
  staticHosts,
  limited = false,
  name = "fake-bench",
  waits = false,
}: BenchConfig): string {
  const [host, port] = address.split(":");
  const provider = staticHosts === undefined ? fakeProvider(name, limited) : staticProvider(staticHosts);
  const config = {
    "zookeeper-servers": [{ host, port: Number(port) }],
    labels: [{ name: LABEL, "min-ready": minReady }, { name: IDLE_LABEL }],
    providers: [provider],
    ...(waits && { "tenant-resource-limits": [{ "tenant-name": WAITING_TENANT, "max-servers": 1 }] }),
  };
  // JSON is YAML.
  return JSON.stringify(config, null, 1);
}

function fakeProvider(name: string, limited: boolean) {
  const most = limited ? 1_000_000 : -1;
  return {
    name,
    driver: "fake",
    cloud: "bench",
    // Below zero: no limit.
    fake: { quota: { instances: most, cores: most, ram: limited ? 1e12 : -1 } },
    "cloud-images": [{ name: "bench-image", "image-id": "fake-image-id" }],
    pools: [
      {
        name: "main",
        ...(limited ? { "max-servers": 100_000 } : {}),
        labels: [LABEL, IDLE_LABEL].map((name) => ({
          name,
          "cloud-image": "bench-image",
          "min-ram": 8192,
          "flavor-name": "Fake",
        })),
      },
    ],
  };
}

function staticProvider(hosts: number) {
  const nodes = Array.from({ length: hosts }, (_, index) => ({
    name: `127.0.${Math.floor(index / 250)}.${(index % 250) + 1}`,
    labels: [LABEL, IDLE_LABEL],
    username: "bench",
    "connection-port": 22,
    // No live check and no key scan: the hosts do not exist.
    "host-key-checking": false,
    "liveness-check": false,
  }));
  return { name: "bench-static", driver: "static", pools: [{ name: "main", nodes }] };
}
