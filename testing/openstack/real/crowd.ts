import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { patient } from "../../patience.ts";
import { CloudUser } from "../admin.ts";
import { LauncherSite, smallCloud } from "../launcher-site.ts";
import { lookAlikes, untilOnly } from "../neighbours.ts";
import { NovaLog } from "../nova-log.ts";
import { QuotaWatch } from "../quota-watch.ts";
import { empty } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

const QUOTA = 20;
/** Servers of another installation in the same project. */
const NEIGHBOURS = 2;
const REQUESTS = Number(process.env.NODEYARD_OPENSTACK_REQUESTS || 200);
/** Deadline for all: a server costs this cloud more than a second of a core. */
const ALL_MS = 900_000;
const OUTAGE_MS = 60_000;
const GONE_MS = 240_000;
const TEST_MS = ALL_MS + GONE_MS + 300_000;
/** One boot in fifty fails; in addition, one server in thirty gets an address that drops packets (run.sh). */
const FAULTS = { spawn_error_rate: 0.02, spawn_error: "disk full" };

const PAUSED = ["neutron-server", "nova-compute-nodeyard-cmp1", "nova-compute-nodeyard-cmp2"];

let site: OpenstackSite;
let user: CloudUser;
let admin: CloudUser;
/** Of another project. */
let stranger: CloudUser;
let launcher: LauncherSite;
let neighbours: ReadonlySet<string>;

beforeAll(async () => {
  // Its user has all rights, so that only the driver's own checks protect neighbours.
  site = OpenstackSite.start("crowd", "admin");
  [user, admin] = [new CloudUser(site, "nodeyard"), new CloudUser(site, "admin")];
  stranger = new CloudUser(OpenstackSite.start("neighbour"), "nodeyard");
  await Promise.all([empty(user), empty(stranger)]);
  const path = `/os-quota-sets/${await user.project()}`;
  await admin.put("compute", path, { quota_set: { instances: QUOTA + NEIGHBOURS, force: true } });
  // Before the launcher reads the quota: what others take later nova has to refuse, and under load it lets a few too many through.
  neighbours = await lookAlikes({ user, installation: "other-installation" });
  launcher = await LauncherSite.start(site, smallCloud);
});

afterAll(async () => {
  site.faults({});
  await launcher?.stop();
  await Promise.all([empty(user), empty(stranger)]);
  for (const one of [user, admin, stranger]) await one.close();
});

test(
  `${REQUESTS} requests under a quota of ${QUOTA}, nova-api gone for a minute, the launcher killed: all are served`,
  async () => {
    const { id: ours } = (await launcher.zuul.record("/nodeyard/installation")) as { id: string };
    const strangers = await lookAlikes({ user: stranger, installation: ours });
    const calls = new NovaLog(site);
    const quota = new QuotaWatch(user, QUOTA + NEIGHBOURS);
    site.faults(FAULTS);
    const labels = Array.from({ length: REQUESTS }, () => ["small"]);
    const all = launcher.zuul.jobs(labels, ALL_MS);
    await sleep(30_000);
    site.signal("nova-api", "SIGKILL");
    await sleep(OUTAGE_MS / 2);
    // The last one, which no pool has taken yet.
    const waiting = (await launcher.zuul.children("/nodepool/requests")).toSorted().at(-1)!;
    const reported = await launcher.explain(waiting);
    await sleep(OUTAGE_MS / 2);
    site.restart();
    await sleep(20_000);
    await launcher.kill();
    await launcher.launch();
    await sleep(20_000);
    for (const service of PAUSED) site.signal(service, "SIGSTOP");
    await sleep(10_000);
    for (const service of PAUSED) site.signal(service, "SIGCONT");
    const jobs = await all;
    const most = await quota.stop();
    const { arrivals: _, freed: __, listings, ...counts } = calls.calls();
    const times = jobs.map(({ ms }) => ms).sort((a, b) => a - b);
    const figures = {
      most,
      listings: listings.length,
      ...counts,
      medianMs: times[times.length >> 1],
      lastMs: times.at(-1),
    };
    process.stderr.write(`${JSON.stringify(figures)}\n${reported}\n`);
    const states = Object.groupBy(jobs, ({ state }) => state);
    const { used = [], ...others } = states;
    expect(others).toEqual({});
    expect(used).toHaveLength(REQUESTS);
    for (const { nodes } of used)
      expect(nodes).toMatchObject([
        { host_keys: launcher.guest.hostKeys, provider: "cloud", type: ["small"] },
      ]);
    expect(most).toBeLessThanOrEqual(QUOTA + NEIGHBOURS);
    expect(counts.refused).toBeLessThanOrEqual(counts.creates / 100);
    expect(reported).toMatch(/no answer|ECONNREFUSED|refused/i);
    await untilOnly(user, neighbours, GONE_MS);
    await untilOnly(stranger, strangers, 0);
  },
  patient(TEST_MS),
);
