import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { paths } from "@nodeyard/model";
import { systemClock, systemRandom } from "@nodeyard/runtime";
import { connectZooKeeperTree, type Tree } from "@nodeyard/tree";
import { ensurePath } from "nodeyard";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Victim } from "../../chaos/victim.ts";
import { type Sshd, startSshd } from "../../sshd/index.ts";
import { freePort, startZooKeeper, type ZooKeeperServer } from "../../zookeeper/index.ts";
import { CloudUser } from "../admin.ts";
import { customer, type Served } from "../customers.ts";
import { NovaLog } from "../nova-log.ts";
import { empty } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

const QUOTA = 20;
const REQUESTS = 200;
/** All 200 within this: a server costs this cloud more than a second of a core. */
const ALL_MS = 720_000;
const OUTAGE_MS = 60_000;
const SESSION_S = 8;

let site: OpenstackSite;
let user: CloudUser;
let admin: CloudUser;
let zookeeper: ZooKeeperServer;
let guest: Sshd;
let guestPort: number;
let folder: string;
let launcher: Victim;
let tree: Tree;

beforeAll(async () => {
  site = OpenstackSite.start();
  [user, admin] = [new CloudUser(site, "nodeyard"), new CloudUser(site, "admin")];
  await quota(QUOTA);
  await empty(user);
  [zookeeper, guest] = await Promise.all([startZooKeeper(), startGuests()]);
  folder = mkdtempSync(join(tmpdir(), "nodeyard-openstack-launcher-"));
  writeFileSync(join(folder, "nodepool.yaml"), CONFIG());
  tree = await connectZooKeeperTree({
    servers: `127.0.0.1:${zookeeper.port}`,
    clock: systemClock,
    random: systemRandom,
    sessionTimeoutMs: 60_000,
  });
  await ensurePath(tree, paths.requests);
  launcher = await startLauncher();
});

afterAll(async () => {
  await launcher?.signal("SIGKILL");
  await tree?.close();
  await guest?.stop();
  await zookeeper?.stop();
  await empty(user);
  rmSync(folder, { recursive: true, force: true });
});

test("200 requests under a quota of 20, nova-api gone for a minute, the launcher killed: all are served", async () => {
  const neighbours = await lookAlikes();
  const calls = new NovaLog(site);
  const watch = watchServers();
  const all = Promise.all(Array.from({ length: REQUESTS }, () => customer(tree, ["small"], ALL_MS)));
  await sleep(40_000);
  site.signal("nova-api", "SIGKILL");
  await sleep(OUTAGE_MS);
  site.restart();
  await sleep(30_000);
  await launcher.signal("SIGKILL");
  launcher = await startLauncher();
  const served: readonly Served[] = await all;
  const most = watch.stop();
  const states = Map.groupBy(served, ({ state }) => state);
  const { refused, creates, reads, deletes } = calls.calls();
  const times = served.map(({ ms }) => ms).sort((a, b) => a - b);
  process.stderr.write(
    `${JSON.stringify({ most, creates, refused, reads, deletes, medianMs: times[REQUESTS / 2], lastMs: times.at(-1) })}\n`,
  );
  expect([...states].map(([state, list]) => [state, list.length])).toEqual([["used", REQUESTS]]);
  expect(served.flatMap(({ hostKeys }) => hostKeys).every((keys) => keys[0] === guest.hostKeys[0])).toBe(
    true,
  );
  expect(most).toBeLessThanOrEqual(QUOTA);
  expect(refused).toBeLessThanOrEqual(creates / 100);
  await untilOnly(neighbours);
});

/** What others have in the project, with names and texts like ours: it must be there afterwards. */
async function lookAlikes(): Promise<ReadonlySet<string>> {
  const { networks } = await user.get<{ networks: readonly Item[] }>("network", "/networks?name=public");
  for (const description of ["np0000000000", "nodeyard/other-installation/cloud/main/0000000000"])
    await user.post("network", "/floatingips", {
      floatingip: { floating_network_id: networks[0]!.id, description },
    });
  const { networks: own } = await user.get<{ networks: readonly Item[] }>(
    "network",
    "/networks?name=nodeyard",
  );
  await user.post("network", "/ports", { port: { network_id: own[0]!.id, name: "np0000000000" } });
  return things();
}

/** The project holds what it held before, and nothing else. */
async function untilOnly(expected: ReadonlySet<string>): Promise<void> {
  const limit = performance.now() + 240_000;
  for (;;) {
    const now = await things();
    const difference = [
      ...[...now].filter((id) => !expected.has(id)),
      ...[...expected].filter((id) => !now.has(id)).map((id) => `${id} is missing`),
    ];
    if (difference.length === 0) return;
    if (performance.now() > limit) expect(difference).toEqual([]);
    await sleep(2_000);
  }
}

async function things(): Promise<ReadonlySet<string>> {
  const [{ servers }, { floatingips }, { ports }] = await Promise.all([
    user.get<{ servers: readonly Item[] }>("compute", "/servers"),
    user.get<{ floatingips: readonly Item[] }>("network", "/floatingips"),
    user.get<{ ports: readonly Item[] }>("network", "/ports"),
  ]);
  return new Set([...servers, ...floatingips, ...ports].map(({ id }) => id));
}

/** The most servers that were there at once. */
function watchServers(): { stop(): number } {
  let most = 0;
  let stopped = false;
  void (async () => {
    while (!stopped) {
      const found = await user
        .get<{ servers: readonly Item[] }>("compute", "/servers")
        .catch(() => undefined);
      most = Math.max(most, found?.servers.length ?? 0);
      await sleep(1_000);
    }
  })();
  return {
    stop() {
      stopped = true;
      return most;
    },
  };
}

/** One server answers for all guests: in the run's namespace their addresses are local ones. */
async function startGuests(): Promise<Sshd> {
  guestPort = await freePort();
  return startSshd({ config: [`ListenAddress 0.0.0.0:${guestPort}`, "MaxStartups 500"] });
}

async function startLauncher(): Promise<Victim> {
  process.env.OS_CLIENT_CONFIG_FILE = site.cloudsYaml;
  const words = ["--state", join(folder, "state"), "-c", join(folder, "nodepool.yaml"), "launcher"];
  const started = new Victim(words, { inside: false });
  if (!(await started.told("the launcher runs"))) throw new Error(started.errors);
  return started;
}

async function quota(instances: number): Promise<void> {
  const path = `/os-quota-sets/${await user.project()}`;
  await admin.put("compute", path, { quota_set: { instances, force: true } });
}

interface Item {
  readonly id: string;
}

const CONFIG = () => `
zookeeper-servers: [{host: 127.0.0.1, port: ${zookeeper.port}}]
zookeeper-timeout: ${SESSION_S}.0
labels:
  - name: small
providers:
  - name: cloud
    driver: openstack
    cloud: nodeyard
    boot-timeout: 30
    launch-timeout: 300
    cloud-images:
      - {name: fake, image-name: nodeyard-fake, username: zuul, connection-port: ${guestPort}}
    pools:
      - name: main
        networks: [nodeyard]
        auto-floating-ip: false
        labels:
          - {name: small, cloud-image: fake, flavor-name: small, key-name: nodeyard}
`;
