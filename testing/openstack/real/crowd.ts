import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CloudUser } from "../admin.ts";
import { LauncherSite, smallCloud } from "../launcher-site.ts";
import { lookAlikes, untilOnly } from "../neighbours.ts";
import { NovaLog } from "../nova-log.ts";
import { QuotaWatch } from "../quota-watch.ts";
import { empty } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

const QUOTA = 20;
const REQUESTS = Number(process.env.NODEYARD_OPENSTACK_REQUESTS || 200);
/** All within this: a server costs this cloud more than a second of a core. */
const ALL_MS = 900_000;
const OUTAGE_MS = 60_000;
const GONE_MS = 240_000;
const TEST_MS = ALL_MS + GONE_MS + 300_000;
/** A boot in fifty goes wrong; besides, one in thirty gets an address that drops packets (run.sh). */
const FAULTS = { spawn_error_rate: 0.02, spawn_error: "disk full" };

let site: OpenstackSite;
let user: CloudUser;
let admin: CloudUser;
let launcher: LauncherSite;

beforeAll(async () => {
  site = OpenstackSite.start();
  [user, admin] = [new CloudUser(site, "nodeyard"), new CloudUser(site, "admin")];
  await empty(user);
  const path = `/os-quota-sets/${await user.project()}`;
  // One place is the neighbour's.
  await admin.put("compute", path, { quota_set: { instances: QUOTA + 1, force: true } });
});

afterAll(async () => {
  site.faults({});
  await launcher?.stop();
  await empty(user);
});

test(
  `${REQUESTS} requests under a quota of ${QUOTA}, nova-api gone for a minute, the launcher killed: all are served`,
  async () => {
    const neighbours = await lookAlikes(user);
    launcher = await LauncherSite.start(site, smallCloud);
    const calls = new NovaLog(site);
    const quota = new QuotaWatch(user);
    site.faults(FAULTS);
    const labels = Array.from({ length: REQUESTS }, () => ["small"]);
    const all = launcher.zuul.jobs(labels, ALL_MS);
    await sleep(30_000);
    site.signal("nova-api", "SIGKILL");
    await sleep(OUTAGE_MS / 2);
    const [waiting] = await launcher.zuul.children("/nodepool/requests");
    const told = await launcher.explain(waiting!);
    await sleep(OUTAGE_MS / 2);
    site.restart();
    await sleep(20_000);
    await launcher.kill();
    await launcher.launch();
    await sleep(20_000);
    for (const service of ["neutron-server", "nova-compute"]) site.signal(service, "SIGSTOP");
    await sleep(10_000);
    for (const service of ["neutron-server", "nova-compute"]) site.signal(service, "SIGCONT");
    const jobs = await all;
    const { most } = await quota.stop();
    const { arrivals: _, ...counts } = calls.calls();
    const times = jobs.map(({ ms }) => ms).sort((a, b) => a - b);
    const figures = {
      most,
      ...counts,
      medianMs: times[times.length >> 1],
      lastMs: times.at(-1),
    };
    process.stderr.write(`${JSON.stringify(figures)}\n${told}\n`);
    const states = Object.groupBy(jobs, ({ state }) => state);
    const { used = [], ...others } = states;
    expect(others).toEqual({});
    expect(used).toHaveLength(REQUESTS);
    for (const { nodes } of used)
      expect(nodes).toMatchObject([
        { host_keys: launcher.guest.hostKeys, provider: "cloud", type: ["small"] },
      ]);
    expect(most).toBeLessThanOrEqual(QUOTA + 1);
    expect(counts.refused).toBeLessThanOrEqual(counts.creates / 100);
    expect(told).toMatch(/no answer|ECONNREFUSED|refused/i);
    await untilOnly(user, neighbours, GONE_MS);
  },
  TEST_MS,
);
