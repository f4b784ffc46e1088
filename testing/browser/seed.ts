import { type Call, MIN_READY, SLOW_NODES } from "./pool-site.ts";
import { until } from "./program.ts";

export const HELD_FOR = "disk errors, see ticket 4711";

/** What people see in a pool in use. */
export interface Seeded {
  /** A lease with two nodes. */
  readonly granted: string;
  /** A lease whose nodes are being made, and one that waits for room in their pool. */
  readonly launching: string;
  readonly waiting: string;
  /** A node that is held with a reason. */
  readonly held: string;
}

/** Fills the pool through REST v1, as an operator; resolves when everything is there. */
export async function seed(call: Call): Promise<Seeded> {
  const lease = async (...labels: readonly string[]) =>
    (await call<{ id: string }>("/v1/leases", { labels })).id;
  const rows = (path: string) => listed(call, path);
  const granted = await lease("debian-small", "debian-large");
  const launching = await lease("arm-board", "arm-board", "arm-board");
  await lease("gpu");
  const sliced = await lease("slice", "slice");
  const building = async () => (await rows("/v1/nodes?state=building&label=arm-board")).length;
  await until("all boards are being made", async () => (await building()) === SLOW_NODES);
  const waiting = await lease("arm-board");
  // What is taken or held is replaced.
  const unused = async () =>
    (await rows("/v1/nodes?state=ready&label=debian-small")).filter((one) => one.allocated_to === null);
  const replaced = () => until("nodes are ready again", async () => (await unused()).length === MIN_READY);
  for (const id of [granted, sliced])
    await until(
      "nodes are delivered",
      async () => (await rows(`/v1/leases?id=${id}`))[0]?.state === "granted",
    );
  await replaced();
  const held = String((await unused())[0]!.id);
  await call(`/v1/nodes/${held}/hold`, { why: HELD_FOR, for_seconds: 86_400 });
  await replaced();
  await until("a request failed", async () => (await rows("/v1/leases?state=failed")).length > 0);
  await until(
    "one image is uploaded, and one is being built",
    async () =>
      (await rows("/v1/uploads?state=ready")).length > 0 &&
      (await rows("/v1/builds?state=building")).length > 0,
  );
  return { granted, launching, waiting, held };
}

export type Row = Readonly<Record<string, unknown>>;

export async function listed(call: Call, path: string): Promise<readonly Row[]> {
  return (await call<{ items: readonly Row[] }>(path)).items;
}
