/**
 * The floor: the fewest writes that a request of one node can cost by the ZooKeeper contract, sent as fast as they go. Four
 * commits with the sub-operations below, one after the other per request, 256 requests in flight, on the raw client. The
 * launcher's throughput is judged against it, so nothing of the launcher is imported here.
 *
 *   node tools/run.mjs bench/floor.ts HOST:PORT [REQUESTS]
 */
import { parseArgs } from "node:util";
import { connect, type MultiOp, type MultiOpResult, type ZooKeeper } from "@nodeyard/zookeeper";
import { NODE_BYTES, REQUEST_BYTES } from "./lib/records.ts";

export const IN_FLIGHT = 256;
/** Commits, and sub-operations in them, that one request costs here. */
export const COMMITS = 4;
export const SUB_OPERATIONS = 11;

export interface FloorFigure {
  readonly requests: number;
  readonly seconds: number;
  readonly perSecond: number;
}

/** Runs the floor once with `count` requests below a path of its own, which it deletes afterwards. */
export async function runFloor(client: ZooKeeper, count: number): Promise<FloorFigure> {
  const root = `/floor-${client.random.uuid()}`;
  for (const path of ["requests", "requests-lock", "nodes"]) await client.ensurePath(`${root}/${path}`);
  try {
    const requests = await Promise.all(
      Array.from({ length: count }, () =>
        client.create(`${root}/requests/100-`, REQUEST_BYTES, { sequential: true }),
      ),
    );
    const started = client.clock.monotonic();
    await inParallel(requests, IN_FLIGHT, ({ path }) =>
      oneRequest(client, root, path.slice(path.lastIndexOf("/") + 1)),
    );
    const seconds = (client.clock.monotonic() - started) / 1_000;
    return { requests: count, seconds, perSecond: count / seconds };
  } finally {
    await client.deleteRecursive(root);
  }
}

async function oneRequest(client: ZooKeeper, root: string, id: string): Promise<void> {
  const request = `${root}/requests/${id}`;
  const accepted = await client.multi(
    lockFirst(client, `${root}/requests-lock/${id}`, request, REQUEST_BYTES),
  );
  const requestContender = pathOf(accepted[1]);
  const [created] = await client.multi([
    { op: "create", path: `${root}/nodes/`, data: NODE_BYTES, sequential: true },
  ]);
  const node = pathOf(created);
  const building = await client.multi(lockFirst(client, `${node}/lock`, node, NODE_BYTES));
  const nodeContender = pathOf(building[1]);
  // Ready, with its external id, and delivered.
  await client.multi([
    { op: "set", path: node, data: NODE_BYTES, version: 1 },
    { op: "delete", path: nodeContender },
    { op: "set", path: request, data: REQUEST_BYTES, version: 1 },
    { op: "delete", path: requestContender },
  ]);
}

/** Lock parent, contender, and the first write under the lock. */
function lockFirst(client: ZooKeeper, parent: string, target: string, data: Uint8Array): MultiOp[] {
  const contender = `${parent}/${client.random.uuid().replaceAll("-", "")}__lock__`;
  return [
    { op: "create", path: parent },
    { op: "create", path: contender, ephemeral: true, sequential: true },
    { op: "set", path: target, data, version: 0 },
  ];
}

function pathOf(result: MultiOpResult | undefined): string {
  if (result?.op !== "create") throw new Error(`a create answered ${JSON.stringify(result)}`);
  return result.path;
}

/** Runs `work` on all items, `limit` at a time. */
export async function inParallel<T>(
  items: readonly T[],
  limit: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const worker = async () => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker));
}

async function main(): Promise<void> {
  const { positionals } = parseArgs({ allowPositionals: true });
  const [server, count = "1000"] = positionals;
  if (server === undefined) throw new Error("usage: bench/floor.ts HOST:PORT [REQUESTS]");
  await using client = await connect(server, { sessionTimeoutMs: 30_000 });
  process.stdout.write(`${JSON.stringify(await runFloor(client, Number(count)))}\n`);
}

if (import.meta.main) await main();
