import { paths } from "@nodeyard/model";
import { expect, test } from "vitest";
import { launcherConfig, staticProvider, World } from "./rules/world.ts";

const host = { name: "127.0.0.1", labels: ["small"], "host-key-checking": false };
const config = launcherConfig([staticProvider([host])]);

const pools = (world: World) => world.children(paths.component("pool"));
const hosts = (world: World) => world.nodes().filter(({ hostname }) => hostname === host.name);

test("a static provider that a Python launcher serves too is refused in one line, and served when that one is gone", async () => {
  const world = new World();
  const python = await world.pythonPool("lab", ["small"]);
  const { log } = await world.start("a", config);
  const refusals = log.lines.filter(({ facts }) => JSON.stringify(facts).includes("not Nodeyard's"));
  expect(refusals).toHaveLength(1);
  expect((refusals[0]!.facts as { error: string }).error).toMatch(
    /^provider lab is also served by a launcher that is not Nodeyard's \(old\.example-PoolWorker\.lab-main-0123\): stop that launcher/,
  );
  const asked = await world.ask();
  await world.run(30_000);
  expect(hosts(world), "nothing is registered beside the other inventory").toEqual([]);
  const story = await world.explain("request", asked);
  expect(story.waits_for).toMatchObject({ code: "provider.foreign", facts: { pool: "lab/main" } });
  expect(story.waits_for!.meaning).toMatch(/^A launcher that is not Nodeyard's serves the provider/);
  expect(story.waits_for!.facts.error).toContain("old.example-PoolWorker.lab-main-0123");
  expect(story.next).toMatch(/^Stop the other launcher/);
  // What that launcher registered is taken over.
  const id = await world.makeNode({
    ...{ state: "ready", provider: "lab", pool: "main", type: ["small"], hostname: host.name, slot: 0 },
    ...{ launcher: "static driver", username: "zuul", connection_port: 22, external_id: host.name },
  });
  await world.settle(world.other.delete(python));
  expect((await world.fulfilled(asked, 90_000)).nodes).toEqual([id]);
  expect(hosts(world)).toHaveLength(1);
});

test("one that comes later ends our service of the inventory until it is gone", async () => {
  const world = new World();
  await world.start("a", config);
  await world.fulfilled(await world.ask());
  const python = await world.pythonPool("lab", ["small"]);
  await world.until("our pool has left", () => pools(world).length === 1, 10_000);
  for (const { id } of hosts(world)) {
    await world.settle(world.other.delete(paths.nodeLock(id)));
    await world.settle(world.other.delete(paths.node(id)));
  }
  await world.run(20_000);
  expect(hosts(world)).toEqual([]);
  await world.settle(world.other.delete(python));
  await world.until("the host is registered again", () => hosts(world).length === 1, 90_000);
});

test("launchers of ours share an inventory, also after a lost session", async () => {
  const world = new World();
  await world.start("a", config);
  const { tree } = await world.start("b", config);
  tree.expire();
  await world.run(20_000);
  expect(pools(world)).toHaveLength(2);
  for (const { log } of world.members) expect(JSON.stringify(log.lines)).not.toContain("not Nodeyard's");
  expect(hosts(world)).toHaveLength(1);
});

test("a host of two launchers' files is registered by one of them at a time, whoever is first, also when both begin at once", async () => {
  const world = new World();
  const other = launcherConfig([staticProvider([{ ...host, labels: ["large"] }], "lab2")]);
  const starting = [world.launch("a", config).starting, world.launch("b", other).starting];
  const [a, b] = await Promise.all(starting.map((one) => world.settle(one)));
  await world.until("it is registered", () => hosts(world).length > 0);
  await world.run(120_000);
  expect(hosts(world)).toHaveLength(1);
  const [winner, loser] = hosts(world)[0]!.provider === "lab" ? [a!, b!] : [b!, a!];
  expect(loser.log.lines.map(({ facts }) => String((facts as { why?: unknown }).why))).toContainEqual(
    expect.stringMatching(/^provider lab2? has nodes of the same host, port and user; remove it from one/),
  );
  const [claimed] = loser.launcher.view.standings.list().filter(({ code }) => code === "host.claimed");
  expect(claimed).toMatchObject({
    kind: "host",
    state: "failing",
    cause: expect.stringMatching(/^provider lab2? has/),
  });
  // Each use registers it anew, in the same provider.
  for (let round = 0; round < 3; round++) {
    const [node] = hosts(world);
    await world.put(paths.node(node!.id), { ...world.node(node!.id), state: "used" });
    await world.until("it is back", () => hosts(world).some(({ id }) => id !== node!.id));
    expect(hosts(world)).toHaveLength(1);
  }
  const had = hosts(world)[0]!.provider;
  await world.settle(winner.launcher.reconfigure(launcherConfig([])));
  await world.until("the other has it", () => hosts(world).some(({ provider }) => provider !== had), 180_000);
  expect(hosts(world)).toHaveLength(1);
});
