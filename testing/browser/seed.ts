import { type Call, MIN_READY, type PoolSite, SLOW_NODES } from "./pool-site.ts";
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
  /** The lease of a job in a sliver whose cache an earlier job left. */
  readonly built: string;
}

/** The job that has the sliver with the cache. */
export const JOB = { system: "gitea", id: "4711", name: "build", url: "https://ci.example.org/runs/4711" };

/** Fills the pool through REST v1, as an operator; resolves when everything is there. */
export async function seed(call: Call, { machine }: Pick<PoolSite, "machine">): Promise<Seeded> {
  const lease = async (...labels: readonly string[]) =>
    (await call<{ id: string }>("/v1/leases", { labels })).id;
  const rows = (path: string) => listed(call, path);
  const granted = await lease("debian-small", "debian-large");
  const launching = await lease("arm-board", "arm-board", "arm-board");
  await lease("gpu");
  const sliced = await lease("slice", "slice");
  const build = async () => {
    const { id } = await call<{ id: string }>("/v1/leases", { labels: ["build"], job: JOB });
    await until(
      "a sliver is delivered",
      async () => (await rows(`/v1/leases?id=${id}`))[0]?.state === "granted",
    );
    return id;
  };
  const first = await build();
  await use(machine);
  await call(`/v1/leases/${first}/release`, { commit: true });
  await machine.until(({ caches }) => caches?.length === 1);
  const built = await build();
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
  const [slice] = await use(machine);
  await suspend(machine, slice!);
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
  return { granted, launching, waiting, held, built };
}

const MIB = 1_048_576;
/** Of a sliver: thousandths of a core, MiB of memory and disk, and processes killed for memory. */
type Figures = readonly [cpuNow: number, memory: number, disk: number, memoryKills: number];
const BUILD: Figures = [700, 960, 310, 0];
const SLICES: readonly Figures[] = [
  [0, 380, 900, 0],
  [1_400, 1_020, 1_500, 1],
  [20, 30, 40, 0],
];

/** Slivers of the machine work, as of its next look at them. Resolves with the names of those that have no cache. */
async function use(machine: PoolSite["machine"]): Promise<readonly string[]> {
  const slivers = (await machine.status()).slivers.filter(({ name }) => name !== "free");
  const slices = slivers.filter(({ volumes }) => volumes === undefined);
  const uses = slivers.flatMap((sliver) => {
    const figures = sliver.volumes === undefined ? SLICES[slices.indexOf(sliver)] : BUILD;
    if (figures === undefined) return [];
    const [cpuNow, memory, disk, memoryKills] = figures;
    return [
      [sliver.name, { usage: { cpuNow, memory: memory * MIB, disk: disk * MIB }, memoryKills }] as const,
    ];
  });
  machine.use(Object.fromEntries(uses));
  return slices.map(({ name }) => name);
}

/** The sliver's document holds it. Resolves when the machine has followed, with what its slivers use. */
async function suspend(machine: PoolSite["machine"], name: string): Promise<void> {
  await machine.change((all) => void all.set(name, { ...all.get(name)!, held: true }));
  await machine.until(({ slivers }) =>
    slivers.some((one) => one.name === name && one.held === true && one.usage !== undefined),
  );
}

export type Row = Readonly<Record<string, unknown>>;

export async function listed(call: Call, path: string): Promise<readonly Row[]> {
  return (await call<{ items: readonly Row[] }>(path)).items;
}
