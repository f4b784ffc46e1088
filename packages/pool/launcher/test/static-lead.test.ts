import { paths } from "@nodeyard/model";
import { Live } from "@nodeyard/telemetry";
import { expect, test } from "vitest";
import { before, type Call } from "./rules/before-write.ts";
import { withMethods } from "./rules/with-methods.ts";
import { launcherConfig, staticProvider, World } from "./rules/world.ts";

const HOST = { name: "10.0.0.1", labels: ["small"], "host-key-checking": false, username: "u" };
const CONFIG = launcherConfig([staticProvider([HOST])]);

const registers = ({ ops }: Pick<Call, "ops">) =>
  ops.some(({ op, path }) => op === "create" && path === `${paths.nodes}/`);

/** Names of those who registered the host, one for each time. */
const registered = ({ cluster }: World) => cluster.log.filter(registers).map(({ client }) => client);

test("rule 1: a host is registered only by the launcher that leads at the moment of the write", async () => {
  const world = new World();
  await world.folder(paths.nodes);
  const election = "/nodeyard/elections/inventory%3Alab";
  // Its contender goes, and another leader registers the host, before the write of the first one arrives.
  const done = before(world, registers, ({ ops }) => {
    for (const name of world.children(election)) void world.other.delete(`${election}/${name}`);
    void world.other.commit(ops.filter(({ op }) => op === "create"));
  });
  await world.start("a", CONFIG);
  await world.until("it registers the host", done);
  await world.run(10_000);
  expect(registered(world)).toEqual(["other"]);
});

test("rule 1: a new leader registers no host before it has read what its predecessor wrote last", async () => {
  const world = new World();
  const host = awayHost();
  const a = await world.start("a", CONFIG, host);
  await world.start("b", CONFIG, host);
  // What b is told of a record's making it reads only when it leads already.
  world.fault = ({ client, kind, path }) => {
    if (client !== "b" || kind !== "get" || !path.startsWith(`${paths.nodes}/`)) return undefined;
    world.fault = () => undefined;
    a.tree.expire();
    return { delayMs: 3_000 };
  };
  host.isAway = false;
  await world.until("a registers the host", () => registered(world).length > 0, 120_000);
  await world.run(10_000);
  expect(registered(world)).toEqual(["a"]);
});

test("a launcher that lost the lead stops probing a dead host", async () => {
  const world = new World();
  const host = awayHost();
  const a = await world.start("a", CONFIG, host);
  await world.start("b", CONFIG, host);
  await world.run(20_000);
  host.isAway = false;
  a.tree.expire();
  await world.until("the host is registered", () => world.nodes().length === 1, 200_000);
  await world.run(60_000);
  expect(await looksWithin(world, 60_000)).toBeLessThan(10);
});

/** How often the inventory was looked at by anybody. */
async function looksWithin(world: World, ms: number): Promise<number> {
  const { during } = Live.prototype;
  let looks = 0;
  Live.prototype.during = function (this: Live, task, work) {
    if (task.name.startsWith("inventory")) looks += 1;
    return during.call(this, task, work) as ReturnType<typeof work>;
  };
  try {
    await world.run(ms);
  } finally {
    Live.prototype.during = during;
  }
  return looks;
}

/** A host that does not answer while it is away, with the driver that looks for it. */
function awayHost() {
  const host = { isAway: true };
  const wrap = withMethods((inner) => ({
    probe: async (item, signal) =>
      host.isAway ? { alive: false, why: "no route to host" } : inner.probe(item, signal),
  }));
  return Object.assign(host, { wrap });
}
