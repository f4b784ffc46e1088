import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  requireZooKeeper,
  startZooKeeper,
  type ZooKeeperServer,
} from "../../../../testing/zookeeper/index.ts";
import { explanationSchema } from "../../../pool/operations/test/explanation-schema.ts";
import { fakeConfig, type Granted, type Running, Site } from "../../cli/test/nodeyard.ts";

/** The session of a launcher that is stopped outlasts the questions about it, on a slow machine too. */
function servers(host: string, port: number): string {
  return fakeConfig({
    extra: `zookeeper-timeout: 40\nzookeeper-servers:\n  - {host: ${host}, port: ${port}}\n`,
  });
}

/** Asks from a place that has no journal of anybody. A launcher that stands still for 3 s is left out of one answer. */
class Stranger {
  readonly site: Site;
  constructor(config: string) {
    this.site = new Site(config);
  }

  async explain(...words: readonly string[]) {
    const { config } = this.site;
    return explanationSchema.parse(await this.site.json<unknown>("-c", config, "explain", ...words));
  }

  /** Asks until so many have answered. */
  async explainBy(count: number, ...words: readonly string[]) {
    for (;;) {
      const explanation = await this.explain(...words);
      if (explanation.members.answered.length === count) return explanation;
    }
  }
}

async function leased(stranger: Stranger): Promise<Granted> {
  const { site } = stranger;
  return site.json<Granted>("-c", site.config, "request", "small", "--wait");
}

/** The whole of it, for a tree with two launchers, of which `second` can be stopped. */
async function tellsOfBoth(stranger: Stranger, second: Running): Promise<void> {
  const granted = await leased(stranger);
  const node = await stranger.explainBy(2, granted.nodes[0]!.id);
  expect(node.members).toMatchObject({ answered: [{}, {}], silent: [] });
  expect(node.journal.problem).toBeNull();
  expect(node.events.map(({ event }) => event)).toContain("node.ready");
  expect(node.steps.map(({ of }) => of)).toContain("launch");
  const label = await stranger.explainBy(2, "label", "small");
  expect(label.pools.map(({ pool, outlook }) => [pool, outlook])).toEqual([
    ["fake-cloud/main", "can"],
    ["fake-cloud/main", "can"],
  ]);

  second.child.kill("SIGSTOP");
  const half = await stranger.explainBy(1, "label", "small");
  expect(half.members.silent).toMatchObject([{ why: "no answer within 3 s" }]);
  expect(half.pools).toHaveLength(1);
  const { out } = await stranger.site.run("-c", stranger.site.config, "explain", "label", "small");
  const unknown = await stranger.site.run("-c", stranger.site.config, "explain", "4711");
  expect(unknown.err).toMatch(/no node 0000004711, .* know it \(no answer from \S+\); see/);
  expect(out).toMatch(/\nDid not answer: \S+ \(no answer within 3 s\)\./);

  second.child.kill("SIGCONT");
  await stranger.explainBy(2, "label", "small");
}

describe.skipIf(requireZooKeeper())("explain, with two launchers on ZooKeeper", () => {
  let zookeeper: ZooKeeperServer;
  const sites: Site[] = [];
  beforeAll(async () => {
    zookeeper = await startZooKeeper();
  });
  afterAll(async () => {
    for (const site of sites) await site.close();
    await zookeeper.stop();
  });

  test("both are asked from anywhere; the one that is stopped is named", async () => {
    const config = servers(zookeeper.host, zookeeper.port);
    const running: Running[] = [];
    for (let count = 0; count < 2; count++) {
      const site = new Site(config);
      sites.push(site);
      const launcher = site.start("-c", site.config, "launcher", "--no-webapp");
      await launcher.printed("the launcher runs");
      running.push(launcher);
    }
    const stranger = new Stranger(config);
    sites.push(stranger.site);
    await tellsOfBoth(stranger, running[1]!);
  });
});

describe("explain, with two launchers on an embedded tree", () => {
  const sites: Site[] = [];
  afterAll(async () => {
    for (const site of sites) await site.close();
  });

  test("both are asked from anywhere; the one that is stopped is named", async () => {
    const first = new Site(fakeConfig());
    sites.push(first);
    const up = first.start("-c", first.config, "up", "--listen", "127.0.0.1:0");
    await up.printed("Nodeyard is up");
    const port = Number(/127\.0\.0\.1:(\d+)/.exec(up.err)![1]);
    const config = servers("127.0.0.1", port);
    const [second, stranger] = [new Site(config), new Stranger(config)];
    sites.push(second, stranger.site);
    const launcher = second.start("-c", second.config, "launcher", "--no-webapp");
    await launcher.printed("the launcher runs");
    await tellsOfBoth(stranger, launcher);
  });
});
