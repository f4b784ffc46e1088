import { writeFileSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  freePort,
  requireZooKeeper,
  startKazoo,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { fakeConfig, type Granted, type Running, Site } from "../../cli/test/nodeyard.ts";

/** Another client, as Zuul is one: its session, and so its ephemeral znode, has to last. */
const CLIENT = `
zk = KazooClient(hosts=args[0], timeout=60)
states = []
zk.add_listener(lambda state: states.append(state))
zk.start(timeout=60)
zk.create('/client', b'', ephemeral=True)
say('ready')
while True:
    hear()
    owner = zk.retry(zk.get, '/client')[1].ephemeralOwner
    say([owner == zk.client_id[0], KazooState.LOST in states])
`;

describe.skipIf(requireZooKeeper())("from one machine to a ZooKeeper and back", { timeout: 0 }, () => {
  let site: Site;
  let zookeeper: ZooKeeperServer | undefined;
  beforeEach(() => {
    site = new Site("");
    site.write(fakeConfig({ journal: `${site.folder}/cloud.journal` }));
  });
  afterEach(async () => {
    await site.close();
    await zookeeper?.stop();
  });

  test("clients that hold and that wait do not notice", async () => {
    const [port, listen] = [await freePort(), `127.0.0.1:${await freePort()}`];
    const moved = `${site.folder}/on-zookeeper.yaml`;
    const servers = `zookeeper-servers:\n  - {host: 127.0.0.1, port: ${port}}\n`;
    writeFileSync(moved, fakeConfig({ journal: `${site.folder}/cloud.journal`, extra: servers }));

    const up = site.start("-c", site.config, "up", "--listen", listen);
    await up.printed("Nodeyard is up");
    const other = startKazoo(CLIENT, [listen]);
    try {
      expect(await other.hear()).toBe("ready");
      const held = await site.json<Granted>("request", "small:4", "--wait");
      const waiting = site.start("request", "small:2", "--wait", "--json");
      await waiting.printed("waiting for a pool");

      // A Nodeyard that runs keeps its tree.
      const early = await site.run("promote", "--to", `127.0.0.1:${port}`, "--data", site.folder);
      expect(early).toMatchObject({
        code: 1,
        err: expect.stringMatching(/is in use by process \d+; stop it/),
      });

      await up.kill("SIGTERM");
      let promotion: Running | undefined;
      zookeeper = await startZooKeeper({
        port,
        fill: async (dataDir) => {
          promotion = site.start("promote", "-c", moved, "--data", dataDir, "--listen", listen);
          await promotion.printed("start the ZooKeeper at");
        },
      });
      await promotion!.printed("clients go on");
      const launcher = site.start("-c", moved, "launcher", "--no-webapp");
      await launcher.printed("the launcher runs");
      expect(await other.ask("?")).toEqual([true, false]);
      const leases = await site.json<{ id: string; state: string }[]>("list", "--leases");
      expect(leases.map(({ state }) => state).sort()).toEqual(["granted", "waiting"]);
      expect((await site.run("-c", moved, "release", held.lease)).code).toBe(0);
      const { out, code } = await waiting.ended;
      expect(code).toBe(0);
      const served = JSON.parse(out) as Granted;

      // Killed, it goes on to forward when it is started again.
      await promotion!.kill("SIGKILL");
      promotion = site.start("promote", "-c", moved, "--listen", listen);
      await promotion.printed("clients go on");
      expect(await other.ask("?")).toEqual([true, false]);

      // Nobody serves the old tree beside the new one.
      const second = await site.run("-c", site.config, "up");
      expect(second).toMatchObject({ code: 1, err: expect.stringContaining("is in use by process") });

      await launcher.kill("SIGTERM");
      await zookeeper.kill();
      expect((await promotion!.kill("SIGTERM")).code).toBe(0);
      const gone = await site.run("-c", site.config, "up");
      expect(gone).toMatchObject({ code: 1, err: expect.stringContaining("moved to a ZooKeeper at") });
      const back = ["promote", "-c", moved, "--back", "--data", zookeeper.dataDir];
      expect(await site.run(...back)).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^\d+ znodes and \d+ sessions are in .*; start it with: nodeyard up\n$/),
      });
      const again = site.start("-c", site.config, "up", "--listen", listen);
      await again.printed("Nodeyard is up");
      expect(await other.ask("?")).toEqual([true, false]);
      expect(await site.json("list", "--leases")).toMatchObject([{ id: served.lease, state: "granted" }]);
      expect((await site.run("release", served.lease)).code).toBe(0);
    } finally {
      await other.kill();
    }
  });

  test("a folder without a tree, a ZooKeeper that runs, and data that is there are refused in one line", async () => {
    zookeeper = await startZooKeeper();
    const to = `127.0.0.1:${zookeeper.plainPort}`;
    const refused = async (...words: string[]) => {
      const { code, err } = await site.run("promote", ...words);
      expect([words, code]).toEqual([words, 1]);
      return err;
    };
    expect(await refused("--to", to, "--data", site.folder)).toContain("holds no tree");
    await (await site.up()).kill("SIGTERM");
    expect(await refused("--to", to, "--data", site.folder)).toContain("runs at");
    expect(await refused("--data", site.folder)).toContain("no ZooKeeper is named");
    const nobody = `127.0.0.1:${await freePort()}`;
    expect(await refused("--to", nobody, "--data", zookeeper.dataDir)).toContain("has data already");
    expect(await refused("--to", nobody)).toContain("--data is missing");
    expect(await refused("--back", "--data", zookeeper.dataDir)).toContain("that would be lost");
    // Nothing of all that has moved it.
    await site.up();
  });
});
