import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { EventClient } from "../../../faces/api/test/v1/event-client.ts";
import { until } from "../../../pool/launcher/test/rig.ts";
import { fakeConfig, type Granted, type Running, Site } from "../../cli/test/nodeyard.ts";

interface Listed {
  readonly id: string;
  readonly state: string;
}

describe.skipIf(requireZooKeeper())("a launcher on ZooKeeper", () => {
  let zookeeper: ZooKeeperServer;
  let site: Site;
  let launcher: Running;

  beforeAll(async () => {
    zookeeper = await startZooKeeper({ tls: true });
    const { tls, port, host } = zookeeper;
    const secure = `zookeeper-tls:\n  cert: ${tls!.cert}\n  key: ${tls!.key}\n  ca: ${tls!.ca}\n`;
    site = new Site(
      fakeConfig({ extra: `zookeeper-servers:\n  - {host: ${host}, port: ${port}}\n${secure}` }),
    );
    launcher = site.start("-c", site.config, "launcher", "--no-webapp");
    await launcher.printed("the launcher runs");
  });
  afterAll(async () => {
    await site.close();
    await zookeeper.stop();
  });

  test("commands find the same tree by the same file, over TLS", async () => {
    const granted = await site.json<Granted>("-c", site.config, "request", "small:2", "--wait");
    expect(granted.nodes).toHaveLength(2);
    expect(await site.json("-c", site.config, "list", "--leases")).toMatchObject([{ id: granted.lease }]);
    expect((await site.run("-c", site.config, "release", granted.lease)).code).toBe(0);
    await launcher.printed("lease.ended");
  });

  test("plain TCP works; a launcher warns of it", async () => {
    const plain = new Site(
      fakeConfig({
        extra: `zookeeper-servers:\n  - {host: ${zookeeper.host}, port: ${zookeeper.plainPort}}\n`,
      }),
    );
    try {
      expect(await plain.run("-c", plain.config, "list")).toMatchObject({ code: 0, err: "" });
      const second = plain.start("-c", plain.config, "launcher", "--no-webapp");
      await second.printed("the launcher runs");
      expect(second.err).toMatch(/"level":"warn".*plain TCP/);
      expect((await second.kill("SIGTERM")).code).toBe(0);
    } finally {
      await plain.close();
    }
  });

  test("a follower of a killed launcher's events gets what another launcher did meanwhile", async () => {
    const { host, plainPort } = zookeeper;
    const other = new Site(
      fakeConfig({ extra: `zookeeper-servers:\n  - {host: ${host}, port: ${plainPort}}\n` }),
    );
    const start = async () => {
      const running = other.start("-c", other.config, "launcher", "--webapp", "127.0.0.1:0");
      await running.printed("the launcher runs");
      return running;
    };
    const request = () => other.json<Granted>("-c", other.config, "request", "small", "--wait");
    const [client, socket] = [new EventClient(), `unix:${other.state}/http.sock`];
    try {
      const killed = await start();
      const first = await request();
      await client.connect(socket);
      await until("all is told", () => client.count("synced") > 0);
      await killed.kill("SIGKILL");
      await client.ended;
      const second = await request();
      expect((await other.run("-c", other.config, "release", first.lease)).code).toBe(0);
      await start();
      await client.connect(socket);
      const picture = () => [...client.picture].filter(([name]) => /^(node|lease)\//.test(name)).sort();
      let wanted: unknown;
      await until("it has what there is", async () => {
        const nodes = await other.json<readonly Listed[]>("-c", other.config, "list");
        const leases = await other.json<readonly Listed[]>("-c", other.config, "list", "--leases");
        const named = (kind: string, rows: readonly Listed[]) =>
          rows.map(({ id, state }) => [`${kind}/${id}`, state]);
        wanted = [...named("lease", leases), ...named("node", nodes)];
        const shown = picture().map(([name, { state }]) => [name, state]);
        return leases.length === 1 && nodes.length === 1 && JSON.stringify(shown) === JSON.stringify(wanted);
      }).catch((error: unknown) => {
        throw new Error(JSON.stringify([wanted, picture()]), { cause: error });
      });
      expect(picture().map(([name]) => name)).toContain(`lease/${second.lease}`);
      expect([client.count("gap"), client.count("synced")]).toEqual([0, 1]);
      // The states of the new node before it was granted were seen by nobody who tells this client.
      const skipped = client.reported.filter(({ data }) => (data as { skipped?: boolean }).skipped === true);
      expect(skipped.map(({ data }) => data.id)).toContain(second.nodes[0]!.id);
      expect((await other.run("-c", other.config, "release", second.lease)).code).toBe(0);
    } finally {
      await client.cut();
      await other.close();
    }
  });

  test("a chroot that is not there is named, at once and not tried again", async () => {
    const { host, plainPort } = zookeeper;
    const servers = `zookeeper-servers:\n  - {host: ${host}, port: ${plainPort}, chroot: /nowhere}\n`;
    const astray = new Site(fakeConfig({ extra: servers }));
    try {
      for (const command of [["list"], ["launcher", "--no-webapp"]]) {
        const { code, err } = await astray.run("-c", astray.config, ...command);
        expect(code).toBe(1);
        expect(err).toMatch(/nodeyard: the chroot \/nowhere does not exist on \S+: create it there/);
      }
    } finally {
      await astray.close();
    }
  });

  test("an outage has a line when it begins, and one when it ends", async () => {
    await zookeeper.restart();
    await launcher.printed("lost the connection to ZooKeeper");
    await launcher.printed("connected to ZooKeeper again");
    expect(launcher.err.match(/lost the connection to ZooKeeper/g)).toHaveLength(1);
  });

  test("SIGTERM takes its pools out of the registry and ends with 0", async () => {
    const { code } = await launcher.kill("SIGTERM");
    expect(code).toBe(0);
    const declined = site.start("-c", site.config, "request", "small", "--wait");
    await declined.printed("waiting for a pool to take it");
    expect((await declined.kill("SIGTERM")).err).toMatch(/released [0-9a-f]{12}/);
  });
});

test("a command gives up on a ZooKeeper that is not there, with one line", async () => {
  const site = new Site(fakeConfig({ extra: "zookeeper-servers:\n  - {host: 127.0.0.1, port: 1}\n" }));
  try {
    const { code, err } = await site.run("-c", site.config, "list");
    expect(code).toBe(1);
    expect(err).toMatch(
      /nodeyard: no ZooKeeper answers at 127\.0\.0\.1:1 within \d+ s \(.+\); see zookeeper-servers/,
    );
  } finally {
    await site.close();
  }
});

test.skipIf(requireZooKeeper())(
  "a ZooKeeper that comes back empty is named with the remedy, in the log of launcher and builder, /ready and doctor",
  async () => {
    const full = await startZooKeeper();
    const extra = `zookeeper-servers:\n  - {host: ${full.host}, port: ${full.port}}\nzookeeper-timeout: 4.0\n`;
    const site = new Site("");
    site.write(`${fakeConfig({ extra, minReady: 1 })}images-dir: ${site.folder}\n`);
    const launcher = site.start("-c", site.config, "launcher", "--webapp", "127.0.0.1:0");
    const builder = site.start("-c", site.config, "builder");
    let empty: ZooKeeperServer | undefined;
    try {
      await launcher.printed("the launcher runs");
      await builder.printed("the builder runs");
      await full.kill();
      empty = await startZooKeeper({ port: full.plainPort });
      for (const daemon of [launcher, builder]) {
        await daemon.printed("ZooKeeper is back, and cannot be used");
        expect(daemon.err).toMatch(/its data was lost, or restored from a copy: start it with its data; or/);
        expect(daemon.err.match(/cannot be used/g)).toHaveLength(1);
      }
      const { code, out } = await site.run("-c", site.config, "doctor");
      expect(code).toBe(1);
      expect(out).toMatch(
        /^WRONG {2}process .*its data was lost, .*restart all launchers, builders and Zuul/m,
      );
      await empty.stop();
      await full.restart();
      await launcher.printed("connected to ZooKeeper again");
    } finally {
      await site.close();
      await empty?.stop();
      await full.stop();
    }
  },
);
