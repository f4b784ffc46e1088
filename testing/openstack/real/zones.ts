import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { CloudUser } from "../admin.ts";
import { LauncherSite } from "../launcher-site.ts";
import { empty } from "../rig.ts";
import { OpenstackSite } from "../site.ts";

const JOB_MS = 540_000;
const GONE_MS = 120_000;
/** The compute host of each zone. */
const HOSTS = { north: "nodeyard-cmp1", south: "nodeyard-cmp2" } as const;
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
  // The first attempt was in another zone. If a guest then gets an address that drops packets, the zone is used once more.
  expect([1, 2]).toContain(launcher.log.match(NO_ROOM)?.length);
});

test("a zone whose hosts boot nothing is given up after five tries, and the request is served in the other one", async () => {
  // The zone with the fewest nodes comes first, north if they are equal: the first test may leave a ready node there.
  const left = await idleNodes();
  const [first, other] = left.length === 0 ? (["north", "south"] as const) : (["south", "north"] as const);
  expect(left.filter(({ az }) => az !== "north")).toEqual([]);
  site.faults({ hosts: { [HOSTS[first]]: { spawn_error_rate: 1, spawn_error: "disk full" } } });
  const [job] = await launcher.zuul.jobs([["medium"]], JOB_MS);
  expect(job).toMatchObject({ state: "used", nodes: [{ az: other }] });
  // After the pause one request tries the zone again, which a busy machine may reach before the other zone answers.
  const closed = new RegExp(
    `"event":"offering.closed"[^\\n]*"az":"${first}"[^\\n]*"failures":(\\d+)[^\\n]*"opens":1,`,
  );
  expect(closed.exec(launcher.log)?.[1]).toBe("5");
});

/** All nodes, once none is being made or deleted any more. */
async function idleNodes(): Promise<readonly Readonly<Record<string, unknown>>[]> {
  let nodes: readonly Readonly<Record<string, unknown>>[] = [];
  const look = async () => {
    const ids = await launcher.zuul.children("/nodepool/nodes");
    nodes = await Promise.all(
      ids.map((id) => launcher.zuul.record(`/nodepool/nodes/${id}`).catch(() => ({ state: "gone" }))),
    );
    return nodes.every(({ state }) => state === "ready");
  };
  await expect.poll(look, { timeout: GONE_MS, interval: 500 }).toBe(true);
  return nodes;
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
