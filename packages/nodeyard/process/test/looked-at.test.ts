import { createSocket, type Socket } from "node:dgram";
import { statSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patience } from "../../../../testing/patience.ts";
import { parsePage, requirePrometheusParser } from "../../../../testing/prometheus/index.ts";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { ask, askJson } from "../../../faces/api/test/rig.ts";
import { fakeConfig, Running, Site } from "../../cli/test/nodeyard.ts";

/** A line of the log: where the web interface listens by TCP. */
async function httpOf(running: Running): Promise<string> {
  await running.printed('"address":"http://');
  return /"address":"(http:\/\/[^"]+)"/.exec(running.err)![1]!;
}

/** Waits for what others bring about; the limit is for a test that would never end. */
async function until(what: string, look: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 1_500 * patience(); tries++) {
    if (await look()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`it never happened: ${what}`);
}

interface ReceivedLines {
  readonly port: number;
  /** Lines by key, since the last `clear`. */
  lines(): readonly string[];
  clear(): void;
}

async function statsdServer(): Promise<ReceivedLines & { close(): void }> {
  const lines: string[] = [];
  const socket: Socket = createSocket("udp4").on("message", (bytes) =>
    lines.push(...bytes.toString().split("\n")),
  );
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    port: (socket.address() as AddressInfo).port,
    lines: () => lines,
    clear: () => void lines.splice(0),
    close: () => void socket.close(),
  };
}

describe.skipIf(requirePrometheusParser())("nodeyard up, looked at", () => {
  let site: Site;
  let up: Running;
  beforeAll(async () => {
    site = new Site(fakeConfig());
    up = await site.up();
  });
  afterAll(() => site.close());

  test("by its own user only, where its file says nothing: a socket in its folder", async () => {
    const socket = `${site.state}/http.sock`;
    expect(statSync(socket).mode & 0o777).toBe(0o600);
    expect(up.err).not.toContain("http://");
    const granted = await site.json<{ nodes: { id: string }[] }>("request", "small", "--wait");
    const nodes = await askJson<{ id: string; state: string }[]>(`unix:${socket}`, "/node-list");
    expect(nodes).toMatchObject([{ id: granted.nodes[0]!.id, state: "in-use", label: ["small"] }]);
    expect((await ask(`unix:${socket}`, "/ready")).text).toBe("OK");
    const families = parsePage((await ask(`unix:${socket}`, "/metrics")).text);
    const family = (name: string) => families.find((one) => one.name === name)!.samples;
    expect(family("nodeyard_launcher_launches")).toMatchObject([
      { labels: { provider: "fake-cloud", result: "ready" }, value: 1 },
    ]);
    expect(family("nodeyard_nodes").find(({ labels }) => labels.state === "in-use")!.value).toBe(1);
    expect(family("nodeyard_provider_max_servers")).toMatchObject([{ value: 5 }]);
    expect(family("nodeyard_ready")[0]!.value).toBe(1);
  });

  test("says whether what it serves is what the files say", async () => {
    const figure = async (name: string) => {
      const families = parsePage((await ask(`unix:${site.state}/http.sock`, "/metrics")).text);
      return families.find((family) => family.name === `nodeyard_config_${name}`)!.samples[0]?.value;
    };
    await until("the files were read", async () => (await figure("last_reload_successful")) === 1);
    const read = await figure("last_reload_success_timestamp_seconds");
    site.write("labels: [");
    await until("they are refused", async () => (await figure("last_reload_successful")) === 0);
    expect(await figure("last_reload_success_timestamp_seconds")).toBe(read);
    expect(await figure("file_modified_timestamp_seconds")).toBeCloseTo(statSync(site.config).mtimeMs / 1000);
    site.write(fakeConfig());
    await until("they are taken", async () => (await figure("last_reload_successful")) === 1);
    expect(await figure("last_reload_success_timestamp_seconds")).toBeGreaterThan(read!);
  });
});

describe.skipIf(requireZooKeeper())("launchers on ZooKeeper, looked at", () => {
  let zookeeper: ZooKeeperServer;
  let statsd: Awaited<ReturnType<typeof statsdServer>>;
  const sites: Site[] = [];
  const launchers: Running[] = [];

  beforeAll(async () => {
    [zookeeper, statsd] = await Promise.all([startZooKeeper(), statsdServer()]);
  });
  afterAll(async () => {
    await Promise.all(launchers.map((launcher) => launcher.kill("SIGKILL")));
    await Promise.all(sites.map((site) => site.close()));
    await zookeeper.stop();
    statsd.close();
  });

  async function start(
    labels: readonly string[],
    provider: string,
    ...words: readonly string[]
  ): Promise<{ running: Running; site: Site }> {
    const { host, port } = zookeeper;
    const extra = `zookeeper-servers:\n  - {host: ${host}, port: ${port}}\nzookeeper-timeout: 20.0\n`;
    const webapp = "webapp: {listen_address: 127.0.0.1, port: 0}\n";
    const site = new Site(fakeConfig({ labels, extra: extra + webapp }).replaceAll("fake-cloud", provider));
    sites.push(site);
    const env = { STATSD_HOST: "localhost", STATSD_PORT: String(statsd.port) };
    const running = new Running(["--state", site.state, "-c", site.config, "launcher", ...words], env);
    launchers.push(running);
    await running.printed("the launcher runs");
    return { running, site };
  }

  const shared = () => statsd.lines().filter((line) => line.startsWith("nodepool.nodes."));
  const own = (provider: string) =>
    statsd.lines().filter((line) => line.startsWith(`nodepool.provider.${provider}.max_servers`));

  test("both show what any of them serves; one of them tells statsd of nodes, and the other takes over", async () => {
    const first = await start(["small"], "one.cloud");
    const address = await httpOf(first.running);
    const second = await start(["large"], "two");
    await until(
      "both are seen",
      async () =>
        JSON.stringify(await askJson(address, `/label-list?fields=label`)) ===
        '[{"label":"large"},{"label":"small"}]',
    );

    // Checks 31 and 32, with a dot that must not make a level.
    const { site } = first;
    await site.json("-c", site.config, "request", "small", "--wait");
    for (const line of [
      /^nodepool\.launch\.ready:1\|c$/,
      /^nodepool\.launch\.requestor\.Nodeyard_lease\.ready:1\|c$/,
      /^nodepool\.launch\.ready:[\d.]+\|ms$/,
      /^nodepool\.launch\.provider\.one_cloud\.ready:[\d.]+\|c$/,
    ])
      await until(`told: ${line}`, () => statsd.lines().some((each) => line.test(each)));
    await until("both tell of themselves", () => own("one_cloud").length > 0 && own("two").length > 0);
    await until("nodes are told of", () => shared().length > 0);

    // Each beat of the leader has every state once (check 33). Were both to tell of nodes, it would be as often as both beat.
    statsd.clear();
    const beats = () => shared().filter((line) => line.startsWith("nodepool.nodes.testing:")).length;
    const owns = () => [own("one_cloud").length, own("two").length];
    await until("both beat, and the leader tells", () => Math.min(...owns()) >= 2 && beats() >= 1);
    expect(beats()).toBeLessThanOrEqual(Math.max(...owns()) + 1);

    // Whoever leads, the one that is left tells on; its labels are all there are (check 29).
    await second.running.kill("SIGTERM");
    await until(
      "its labels have gone",
      async () => JSON.stringify(await askJson(address, `/label-list`)) === '[{"label":"small"}]',
    );
    statsd.clear();
    await until("the other tells", () => shared().length > 0);
    await until("what has vanished is zero, or told of no more", () => own("two").length === 0);
  });

  test("/ready follows the tree, /live does not (check 28)", async () => {
    const { running } = await start(["small"], "three");
    const address = await httpOf(running);
    await until("it is ready", async () => (await ask(address, "/ready")).status === 200);
    await zookeeper.stop();
    await until("it is not ready", async () => (await ask(address, "/ready")).status === 503);
    expect((await ask(address, "/live")).status).toBe(200);
    expect((await ask(address, "/node-list")).status).toBe(200);
    expect((await ask(address, "/image-status")).status).toBe(503);
    expect((await ask(address, "/metrics")).text).toMatch(/^nodeyard_tree_connected 0$/m);
    await running.kill("SIGKILL");
  });
});
