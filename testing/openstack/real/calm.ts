import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { patient } from "../../patience.ts";
import { CloudUser } from "../admin.ts";
import { LauncherSite, smallCloud } from "../launcher-site.ts";
import { freePlaces, NovaLog } from "../nova-log.ts";
import { empty } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

/** So few that the cloud itself causes no delay. */
const QUOTA = 5;
const REQUESTS = 30;
const JOB_MS = 300_000;
/**
 * Listings that may show a place before it is taken: the launcher looks about once a second, and acts on what it sees. More on a busy
 * machine, where the commits between a look and the next create take longer than the pause between two looks.
 */
const LOOKS = patient(2);

let site: OpenstackSite;
let user: CloudUser;
let launcher: LauncherSite;

beforeAll(async () => {
  site = OpenstackSite.start("calm");
  user = new CloudUser(site, "nodeyard");
  await empty(user);
  const path = `/os-quota-sets/${await user.project()}`;
  await new CloudUser(site, "admin").put("compute", path, { quota_set: { instances: QUOTA, force: true } });
  launcher = await LauncherSite.start(site, smallCloud);
});

afterAll(async () => {
  await launcher?.stop();
  await empty(user);
});

test("a place that nova counts as free is taken after at most two looks that show it on an idle machine, each of them", async () => {
  await noServers();
  const log = new NovaLog(site);
  const labels = Array.from({ length: REQUESTS }, () => ["small"]);
  const jobs = await launcher.zuul.jobs(labels, JOB_MS);
  const calls = log.calls();
  // A request waited for each of these creates; later ones are second attempts for guests that never answered.
  const places = freePlaces(calls, QUOTA).slice(0, REQUESTS - QUOTA);
  const reported = places.map(({ freeMs, shown }) => `${Math.round(freeMs)} (${shown})`);
  process.stderr.write(`places were free for ms (listings that showed them): ${reported.join(" ")}\n`);
  expect(jobs.map(({ state }) => state)).toEqual(jobs.map(() => "used"));
  expect(calls.refused).toBe(0);
  expect(places).toHaveLength(REQUESTS - QUOTA);
  expect(Math.max(...places.map(({ shown }) => shown))).toBeLessThanOrEqual(LOOKS);
});

/** Waits until the whole quota is free and everything of an earlier attempt is gone. */
async function noServers(): Promise<void> {
  const servers = () => user.get<{ servers: readonly unknown[] }>("compute", "/servers/detail");
  while ((await servers()).servers.length > 0) await sleep(500);
}
