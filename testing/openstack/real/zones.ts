import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { CloudUser } from "../admin.ts";
import { LauncherSite } from "../launcher-site.ts";
import { empty } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

const JOB_MS = 540_000;
const GONE_MS = 120_000;
/** The compute host of zone "north", of which the scheduler takes first what has no nodes yet. */
const NORTHERN = "nodeyard-cmp1";
/** A try that failed, in the launcher's log. */
const NO_ROOM = /"of":8,"kind":"capacity"[^\n]*No valid host/g;

let site: OpenstackSite;
let user: CloudUser;
let launcher: LauncherSite;

beforeAll(async () => {
  site = OpenstackSite.start("zones");
  user = new CloudUser(site, "nodeyard");
  await empty(user);
  launcher = await LauncherSite.start(site, configuration);
});

afterEach(() => site.faults({}));

afterAll(async () => {
  await launcher?.stop();
  await empty(user);
  await user.close();
});

test("a zone without room for one node of a nodeset is left by all of it", async () => {
  const [job] = await launcher.zuul.jobs([["small", "southern"]], JOB_MS);
  expect(job).toMatchObject({ state: "used", nodes: [{ az: "south" }, { az: "south" }] });
  // The first try was elsewhere.
  expect(launcher.log.match(NO_ROOM)).toHaveLength(1);
});

test("a zone whose hosts boot nothing is given up after five tries, and the request is served in the other one", async () => {
  await noNodes();
  site.faults({ hosts: { [NORTHERN]: { spawn_error_rate: 1, spawn_error: "disk full" } } });
  const [job] = await launcher.zuul.jobs([["medium"]], JOB_MS);
  expect(job).toMatchObject({ state: "used", nodes: [{ az: "south" }] });
  expect(launcher.log.match(/"of":8,"kind":"transient"[^\n]*disk full/g)).toHaveLength(5);
});

/** What the first test leaves in either zone would decide which comes first. */
async function noNodes(): Promise<void> {
  await expect
    .poll(() => launcher.zuul.children("/nodepool/nodes"), { timeout: GONE_MS, interval: 500 })
    .toEqual([]);
}

const configuration = (guestPort: number) => `
labels:
  - {name: small}
  - {name: medium}
  - {name: southern}
providers:
  - name: cloud
    driver: openstack
    cloud: nodeyard
    boot-timeout: 15
    launch-timeout: 300
    launch-retries: 8
    cloud-images:
      - {name: fake, image-name: nodeyard-fake, username: zuul, connection-port: ${guestPort}}
    pools:
      - name: main
        networks: [nodeyard]
        auto-floating-ip: false
        labels:
          - {name: small, cloud-image: fake, flavor-name: small}
          - {name: medium, cloud-image: fake, flavor-name: medium}
          - {name: southern, cloud-image: fake, flavor-name: southern}
`;
