import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { checkLog } from "./lost-writes.ts";
import { fakeProvider, launcherConfig, World } from "./world.ts";

const limits = new Map([["cloud/main", 3]]);
const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 3 })]);
const busyConfig = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 20 })]);
const LEDGER = "/nodeyard/limits/cloud/main";

/** Removes a record and all beneath it, as kazoo's recursive delete does: nobody tells the ledger. */
async function removeRecord(world: World, id: string): Promise<void> {
  const lock = paths.nodeLock(id);
  for (const name of world.children(lock)) await world.settle(world.other.delete(`${lock}/${name}`));
  await world.settle(world.other.delete(lock));
  await world.settle(world.other.delete(paths.node(id)));
}

/** Launchers whose pool is full of ready nodes that clients have locked. */
async function fullPool(): Promise<{ readonly world: World; readonly nodes: readonly string[] }> {
  const world = new World();
  for (const name of ["launcher-a", "launcher-b"]) await world.start(name, config);
  const nodes: string[] = [];
  for (let count = 0; count < 3; count++) {
    const request = await world.ask();
    const { nodes: given } = await world.fulfilled(request);
    nodes.push(...(given as string[]));
    for (const id of given as string[]) await world.contend(paths.nodeLock(id));
  }
  return { world, nodes };
}

test("rule 3: room that others free goes to the waiting request, at once and without a failing try", async () => {
  const { world, nodes } = await fullPool();
  const waiting = await world.ask();
  await world.run(20_000);
  expect(world.request(waiting)?.state).toBe("requested");
  await removeRecord(world, nodes[0]!);
  const [since, written] = [world.clock.monotonic(), world.cluster.log.length];
  await world.fulfilled(waiting, 600_000);
  const writes = world.cluster.log.slice(written).filter(({ client }) => client.startsWith("launcher-"));
  // About a dozen, and not the hundreds of a request that is accepted and put back again and again.
  expect(writes.length).toBeLessThan(40);
  expect(world.clock.monotonic() - since).toBeLessThan(2_000);
  expect(world.json(LEDGER)).toMatchObject({ instances: 3 });
  checkLog(world.cluster.log, limits);
});

test("rule 3: a ledger that is off is corrected while it is written all the time", async () => {
  const world = new World();
  for (const name of ["launcher-a", "launcher-b", "launcher-c"]) await world.start(name, busyConfig);
  const open = new Set<string>();
  let served = 0;
  /** Keeps more asked for than there is room for, and gives each nodeset back as it comes. */
  const turn = async () => {
    while (open.size < 32) open.add(await world.ask());
    for (const id of open) {
      if (world.request(id)?.state !== "fulfilled") continue;
      open.delete(id);
      served++;
      await world.use(id);
    }
    await world.run(1);
  };
  const standing = () =>
    world
      .nodes()
      .find(({ id, state }) => state === "ready" && world.children(paths.nodeLock(id)).length === 0);
  while (served < 30 || standing() === undefined) await turn();
  const off = () => (world.json(LEDGER)?.instances as number) - world.nodes().length;
  expect(off()).toBe(0);
  await removeRecord(world, standing()!.id);
  expect(off()).toBe(1);
  const since = world.clock.monotonic();
  let lasted = 0;
  while (off() !== 0 && lasted < 20_000) {
    await turn();
    lasted = world.clock.monotonic() - since;
  }
  expect(lasted).toBeLessThan(20_000);
  checkLog(world.cluster.log, new Map([["cloud/main", 20]]));
});
