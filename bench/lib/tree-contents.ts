import type { ZooKeeper } from "@nodeyard/zookeeper";
import { inParallel } from "../floor.ts";
import {
  FOREIGN_LABEL,
  FOREIGN_PROVIDER,
  IDLE_LABEL,
  idleNode,
  LABEL,
  WAITING_TENANT,
  zuulRequest,
} from "./records.ts";
import { NODES, REQUESTS } from "./requester.ts";

const WRITES_IN_FLIGHT = 1_024;

export interface Contents {
  readonly nodes: number;
  readonly requests: number;
  /** Whether the nodes are another launcher's: ours would find out in some minutes that they have no machines. */
  readonly elsewhere?: boolean;
  /** The requests are for our label, of a tenant whose only node is in use: so they wait, and no launcher declines them. */
  readonly waits?: boolean;
}

/**
 * Fills a tree as in a large installation: idle nodes with lock parents, and open requests for a label that only another launcher serves.
 * That launcher registers a pool, so ours declines the requests and none of them fails.
 */
export async function fillTree(
  client: ZooKeeper,
  { nodes, requests, elsewhere = false, waits = false }: Contents,
): Promise<void> {
  const provider = elsewhere ? [FOREIGN_PROVIDER] : [];
  for (const path of [NODES, REQUESTS, "/nodepool/requests-lock", "/nodepool/components/pool"])
    await client.ensurePath(path);
  await registerForeignPool(client);
  const asked = waits ? [LABEL, WAITING_TENANT] : [FOREIGN_LABEL];
  const user = { state: "in-use", tenant_name: WAITING_TENANT, allocated_to: "100-0000000000" };
  const numbers = Array.from({ length: Math.max(nodes, requests) }, (_, index) => index);
  const at = Date.now() / 1_000;
  await inParallel(numbers, WRITES_IN_FLIGHT, async (number) => {
    if (number < nodes) {
      const [from] = provider;
      const node = idleNode(IDLE_LABEL, at, number, from, waits && number === 0 ? user : {});
      const { path } = await client.create(`${NODES}/`, node, { sequential: true });
      await client.create(`${path}/lock`);
    }
    if (number < requests)
      await client.create(`${REQUESTS}/100-`, zuulRequest(asked[0]!, at, number, asked[1]), {
        sequential: true,
      });
  });
}

async function registerForeignPool(client: ZooKeeper): Promise<void> {
  const pool = {
    hostname: "another-launcher",
    id: "another-launcher-PoolWorker.bench-elsewhere-main-00000000000000000000000000000000",
    kind: "pool",
    model_api: 0,
    name: "main",
    paused: false,
    priority: 100,
    provider_name: FOREIGN_PROVIDER,
    state: "running",
    supported_labels: [FOREIGN_LABEL],
    version: "11.0.0",
  };
  await client.create("/nodepool/components/pool/another-launcher", Buffer.from(JSON.stringify(pool)), {
    ephemeral: true,
    sequential: true,
  });
}

/** Reads everything once as fast as the client can: one getData per record, one getChildren per lock parent. */
export async function readEverything(client: ZooKeeper): Promise<number> {
  const started = performance.now();
  const [nodes, requests] = await Promise.all([client.children(NODES), client.children(REQUESTS)]);
  const reads = [
    ...nodes.children.flatMap((id) => [
      () => client.get(`${NODES}/${id}`),
      () => client.children(`${NODES}/${id}/lock`),
    ]),
    ...requests.children.map((id) => () => client.get(`${REQUESTS}/${id}`)),
  ];
  await inParallel(reads, WRITES_IN_FLIGHT, async (read) => void (await read()));
  return performance.now() - started;
}
