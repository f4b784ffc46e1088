import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import type { Victim } from "../../chaos/victim.ts";
import { patient } from "../../patience.ts";
import { removeFolder, temporaryFolder } from "../../zookeeper/children.ts";
import { startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { type ConnectorPlace, startConnector } from "../connector.ts";
import { ZuulPlayer } from "../player.ts";
import { requireZuul } from "../require.ts";
import { makeYard, type Yard } from "../yard.ts";

const SOON = { timeout: patient(40_000), interval: 100 };
/** One machine, so that a lease that is left over, or a second one, is seen: the next never gets a node. */
const CONFIG = `
labels: [{name: small}]
providers:
  - name: cloud
    driver: fake
    cloud: memory
    fake: {}
    cloud-images: [{name: debian, username: zuul}]
    pools:
      - {name: main, max-servers: 1, labels: [{name: small, cloud-image: debian, min-ram: 1024}]}
`;

describe.skipIf(requireZuul())("the connector of Zuul's nodes", () => {
  let folder: string;
  let yard: Yard;
  let zookeeper: ZooKeeperServer;
  let player: ZuulPlayer;
  let place: ConnectorPlace;
  let connector: Victim | undefined;

  beforeAll(async () => {
    folder = await temporaryFolder("nodeyard-connector-");
    [yard, zookeeper] = await Promise.all([makeYard("embedded"), startZooKeeper({ tls: true })]);
    const servers = `localhost:${zookeeper.port}`;
    player = new ZuulPlayer(servers, zookeeper.tls!);
    await Promise.all([yard.start(CONFIG), player.ready()]);
    place = {
      folder,
      pool: yard.socket,
      servers,
      tls: zookeeper.tls!,
      more: "    labels: {zl-small: small}\n",
    };
  });
  afterEach(async () => {
    await connector?.signal("SIGKILL");
  });
  afterAll(async () => {
    player?.kill();
    await zookeeper?.stop();
    await yard?.close();
    await removeFolder(folder);
  });

  const start = async (kill?: string) => {
    connector = await startConnector(place, kill);
    return connector;
  };
  const state = (node: string) => expect.poll(async () => (await player.node(node))?.state ?? "gone", SOON);
  const leases = () => yard.json<readonly { readonly state: string }[]>("list", "--leases");
  /** Nothing of a node is left on either side. */
  async function nothingLeft(): Promise<void> {
    await expect.poll(() => player.call("paths"), SOON).toEqual([]);
    await expect
      .poll(async () => (await leases()).filter(({ state }) => state !== "released"), SOON)
      .toEqual([]);
  }

  test("a node is leased, used and given back, whichever write the connector dies after", async () => {
    const deaths: string[] = [];
    // Killed before a write is killed after the one before it: nothing else is stored in between.
    for (let number = 0, isDead = true; isDead; number++) {
      const victim = await start(number === 0 ? "1:before" : `${number}:after`);
      // Who was killed is followed by another at once.
      let follower: Promise<Victim> | undefined;
      void victim.ended.then(() => {
        follower = victim.errors.includes("ZUUL: killed") ? start() : undefined;
      });
      const { request, node } = await player.call<{ request: string; node: string }>("request", "zl-small");
      await state(node).toBe("ready");
      const [leased] = await leases();
      expect(leased).toMatchObject({
        state: "granted",
        job: { system: "zuul", id: "3f0c", name: "unit", url: null },
      });
      expect((await player.node(node))?.host_keys.length).toBeGreaterThan(0);
      await player.call("accept", request);
      expect((await player.node(node))?.state).toBe("in-use");
      await player.call("give_back", request);
      await nothingLeft();
      // It says so when it is still alive.
      isDead = !(await victim.printed("a node of Zuul was removed"));
      if (isDead) deaths.push(/ZUUL: killed (.*)/.exec(victim.errors)![1]!);
      await (await follower)?.signal("SIGKILL");
      await victim.signal("SIGKILL");
    }
    // Lock, building, unlock; lease; lock, ready, unlock; lock, return, deletion.
    expect(deaths.length).toBeGreaterThanOrEqual(11);
  });

  test("a request that is cancelled gives back what it waits for, and what it has", async () => {
    await start();
    const first = await player.call<{ request: string; node: string }>("request", "zl-small");
    await state(first.node).toBe("ready");
    const second = await player.call<{ request: string; node: string }>("request", "zl-small");
    await state(second.node).toBe("building");
    await expect.poll(async () => (await leases()).length, SOON).toBe(2);
    await player.call("cancel", second.request);
    await state(second.node).toBe("gone");
    await player.call("cancel", first.request);
    await state(first.node).toBe("gone");
    await nothingLeft();
  });

  test("a node without a request is kept ready, held when somebody asks for that, and deleted when asked", async () => {
    await start();
    const node = await player.call<string>("min_ready", "zl-small");
    await state(node).toBe("ready");
    await player.call("next_state", node, "hold", "ann looks at it");
    await state(node).toBe("hold");
    expect(await player.node(node)).toMatchObject({ comment: "ann looks at it", request: null });
    await player.call("next_state", node, "used", null);
    await state(node).toBe("gone");
    await nothingLeft();
    const brief = await player.call<string>("min_ready", "zl-small", 1);
    await state(brief).toBe("gone");
    await nothingLeft();
  });

  test("a label that the pool does not have fails the node, and a lease that is lost takes its node away", async () => {
    await start();
    const { request, node } = await player.call<{ request: string; node: string }>("request", "nowhere");
    await state(node).toBe("failed");
    await player.call("cancel", request);
    await state(node).toBe("gone");
    const lost = await player.call<{ request: string; node: string }>("request", "zl-small");
    await state(lost.node).toBe("ready");
    const [lease] = await yard.json<readonly { readonly id: string }[]>("list", "--leases");
    await yard.run("release", lease!.id);
    await state(lost.node).toBe("gone");
    await nothingLeft();
  });

  test("two connectors at once: each node has one lease, and either of them may die", async () => {
    const [one, other] = [await startConnector(place), await start()];
    for (const dying of [undefined, one, undefined]) {
      const { request, node } = await player.call<{ request: string; node: string }>("request", "zl-small");
      await state(node).toBe("ready");
      expect(await leases()).toHaveLength(1);
      await player.call("accept", request);
      await dying?.signal("SIGKILL");
      await player.call("give_back", request);
      await nothingLeft();
    }
    expect([one.dead, other.dead]).toEqual([true, false]);
  });

  test("while a launcher serves the connection, too, nothing is touched; an unknown model API is said", async () => {
    await player.call("components", [], 39);
    const victim = await start();
    await victim.printed("zuul-launcher on player serves the connection nodeyard, too");
    expect(victim.errors).toContain("has model API 39, with which this release was not tested");
    const { request, node } = await player.call<{ request: string; node: string }>("request", "zl-small");
    await player.call("components", ["elsewhere"], 38);
    await state(node).toBe("ready");
    await player.call("cancel", request);
    await nothingLeft();
  });
});
