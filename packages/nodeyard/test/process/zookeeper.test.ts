import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { fakeConfig, type Running, Site } from "../cli/nodeyard.ts";

interface Granted {
  readonly lease: string;
  readonly nodes: readonly object[];
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
    await launcher.told("the launcher runs");
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
    await launcher.told("lease.ended");
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
      await second.told("the launcher runs");
      expect(second.err).toMatch(/"level":"warn".*plain TCP/);
      expect((await second.kill("SIGTERM")).code).toBe(0);
    } finally {
      await plain.close();
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
    await launcher.told("lost the connection to ZooKeeper");
    await launcher.told("connected to ZooKeeper again");
    expect(launcher.err.match(/lost the connection to ZooKeeper/g)).toHaveLength(1);
  });

  test("SIGTERM takes its pools out of the registry and ends with 0", async () => {
    const { code } = await launcher.kill("SIGTERM");
    expect(code).toBe(0);
    const declined = site.start("-c", site.config, "request", "small", "--wait");
    await declined.told("waiting for a pool to take it");
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
