import { paths } from "@nodeyard/model";
import { askForNodes } from "@nodeyard/operations";
import { seededRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { fakeProvider, launcherConfig, World } from "./rules/world.ts";

const shares = { tenants: new Map([["web", 1]]), clients: new Map<string, number>() };
const config = launcherConfig([fakeProvider("cloud", {}, { "max-servers": 4 })], { shares });

test("two launchers give what returns to who has less, and no launcher undoes what the other does", async () => {
  const world = new World();
  await world.start("a", config);
  await world.start("b", config);
  const ask = async (tenant: string, count: number) => {
    const ids: string[] = [];
    for (let asked = 0; asked < count; asked++) ids.push(await world.ask({ tenant_name: tenant }));
    return ids;
  };
  const first = await ask("web", 4);
  for (const id of first) await world.fulfilled(id);
  const web = await ask("web", 4);
  const late = await ask("docs", 2);
  await world.run(500);
  for (const id of first.slice(0, 2)) await world.use(id);
  for (const id of late) await world.fulfilled(id);
  // One that was accepted before the other launcher's nodes were seen is put back.
  await world.run(1_000);
  expect(web.map((id) => world.request(id)?.state)).toEqual(web.map(() => "requested"));
});

test("the owner of a lease is its client, also when the request is gone; explain says who is before it", async () => {
  const world = new World();
  const { launcher } = await world.start("a", config);
  const handles = { tree: world.other, clock: world.clock, random: seededRandom(1) };
  const lease = (owner: string) =>
    world.settle(askForNodes(handles, { labels: ["small"], owner, forMs: 3_600_000 }));
  for (let asked = 0; asked < 4; asked++) await lease("ann@desk");
  await world.until("the requests are gone", () => world.children(paths.requests).length === 0);
  await lease("ben@desk");
  const waits = (await lease("ann@desk")).request!;
  await world.run(500);
  expect(launcher.verdict(waits)).toMatchObject({
    code: "queue.share",
    facts: { client: "ann@desk", nodes: 4, weight: 1, first: "ben@desk", first_nodes: 0, first_weight: 1 },
  });
});
