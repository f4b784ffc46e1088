import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DriverError, Resource } from "@nodeyard/driver";
import { afterEach, expect, test } from "vitest";
import { type GceSettings, startGce } from "../../../../testing/gce/index.ts";
import { type GceProviderConfig, thisHost } from "../src/index.ts";
import { compile, GceRig } from "./rig.ts";

const NODE = "0000000042";
const SIGNAL = new AbortController().signal;
const ZONES = ["us-central1-a", "us-central1-b", "us-central1-c"];

let rig: GceRig;
afterEach(() => rig.stop());

async function site(settings: Partial<GceSettings> = {}, config: GceProviderConfig = compile()) {
  rig = new GceRig(settings);
  return { config, cloud: rig.cloud, provider: await rig.open(config) };
}
const failure = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail("the call should have failed"),
    (error: DriverError) => error,
  );
const inserts = () => rig.cloud.calls.filter(({ call }) => call === "instances.insert");
const bodyOf = (index = 0) => inserts()[index]?.body as Record<string, unknown>;
const instances = (all: readonly Resource[]) => all.filter(({ type }) => type === "instance");

test("a launch is one call, a deletion another one; the node has its zone and region (check 31)", async () => {
  const { provider, config, cloud } = await site();
  const order = rig.order(config, NODE);
  const machine = await rig.create(provider, order);
  expect(machine).toMatchObject({
    ...{ cloud: "Google", region: "us-central1", az: "us-central1-a", privateIpv4: expect.any(String) },
  });
  const need = await rig.drive(provider.need(order.label, SIGNAL));
  expect(need).toMatchObject({
    instances: 1,
    cores: 4,
    ram: 16_384,
    CPUS: 4,
    DISKS_TOTAL_GB: 10,
    IN_USE_ADDRESSES: 1,
  });
  expect(machine.interfaceIp).toBe(machine.publicIpv4);
  await rig.remove(provider, order, machine.externalId);
  const {
    "instances.insert": made,
    "instances.delete": deleted,
    "zoneOperations.wait": waits,
  } = cloud.counts();
  expect({ made, deleted, waits }).toEqual({ made: 1, deleted: 1, waits: undefined });
  expect(cloud.compute.disks.size).toBe(0);
});

test("a second machine beyond the quota of the region waits for the first (check 31)", async () => {
  const { provider, config } = await site({ quotas: { INSTANCES: 1, CPUS: 24, CPUS_ALL_REGIONS: 100 } });
  expect(await rig.drive(provider.quota(SIGNAL))).toEqual({ instances: 1, CPUS: 24, CPUS_ALL_REGIONS: 100 });
  const [one, other] = ["0000000001", "0000000002"].map((node) => rig.order(config, node));
  const { externalId } = await rig.create(provider, one!);
  const refused = await failure(rig.create(provider, other!));
  expect(refused).toMatchObject({
    kind: "quota",
    message: expect.stringContaining("Quota 'INSTANCES' exceeded"),
  });
  await rig.remove(provider, one!, externalId);
  await rig.create(provider, other!);
});

test("what other regions use is taken from the project's limit", async () => {
  const { provider, config } = await site();
  const far = compile({ small: {} }, { provider: { region: "europe-west4", zone: "europe-west4-a" } });
  await rig.create(await rig.open(far), rig.order(far, NODE));
  await rig.clock.advance(60_000);
  await rig.create(provider, rig.order(config, NODE));
  await rig.clock.advance(60_000);
  expect(await rig.drive(provider.quota(SIGNAL))).toMatchObject({ CPUS_ALL_REGIONS: 4_996, CPUS: 2_400 });
});

test("a machine type whose size is missing is an error that is not kept; one that is not there is the label's (check 32)", async () => {
  const { provider, config, cloud } = await site({ unsized: ["e2-standard-4"] });
  const [pool] = config.pools;
  const label = pool!.labels.get("small")!;
  expect((await failure(rig.drive(provider.need(label, SIGNAL)))).kind).toBe("transient");
  cloud.set({ unsized: [] });
  expect(await rig.drive(provider.need(label, SIGNAL))).toMatchObject({ cores: 4 });
  const other = compile({ small: { "instance-type": "e9-standard-4" } });
  const wrong = other.pools[0]!.labels.get("small")!;
  expect((await failure(rig.drive(provider.need(wrong, SIGNAL)))).kind).toBe("configuration");
});

test("a stock-out ends a launch with kind capacity and the zones that have room, and the next zone serves", async () => {
  const pool = { "availability-zones": ZONES };
  const { provider, config, cloud } = await site(
    { capacity: [{ zone: "us-central1-a", type: "e2-standard-4", most: 0 }] },
    compile({ small: {} }, { pool }),
  );
  const started = rig.clock.monotonic();
  const error = await failure(rig.create(provider, rig.order(config, NODE, { az: "us-central1-a" })));
  expect(error).toMatchObject({ kind: "capacity" });
  expect(error.message).toContain("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS");
  expect(error.message).toContain("zones with room: us-central1-b,us-central1-c");
  // Nodepool's driver waits for an hour.
  expect(rig.clock.monotonic() - started).toBeLessThan(30_000);
  expect(cloud.counts()["zoneOperations.wait"]).toBe(1);
  const machine = await rig.create(provider, rig.order(config, NODE, { az: "us-central1-b", attempt: 2 }));
  expect(machine.az).toBe("us-central1-b");
});

test.each([
  ["QUOTA_EXCEEDED", "quota"],
  ["RESOURCE_NOT_FOUND", "configuration"],
  ["RESOURCE_NOT_READY", "transient"],
  ["UNSUPPORTED_OPERATION", "unsupported"],
  ["INTERNAL_ERROR", "transient"],
] as const)("an operation that ends with %s is an error of kind %s", async (reason, kind) => {
  const { provider, config } = await site({ faults: [{ call: "instances.insert", how: "fail", reason }] });
  expect((await failure(rig.create(provider, rig.order(config, NODE)))).kind).toBe(kind);
  expect(
    (
      await failure(
        rig.create(
          provider,
          rig.order(compile({ small: { "cloud-image": "debian" } }), NODE, {
            pool: {
              ...config.pools[0]!,
              own: { network: "nope", subnetwork: null, networkTags: [], publicIpv4: true },
            },
          }),
        ),
      )
    ).kind,
  ).toBe("configuration");
});

test("a minute's quota of calls that is used up is waited for, and fails nothing", async () => {
  const { provider, config, cloud } = await site({ perMinute: { write: 4 } });
  const orders = Array.from({ length: 10 }, (_, node) =>
    rig.order(config, String(node + 1).padStart(10, "0")),
  );
  await rig.drive(Promise.all(orders.map((order) => rig.run((step) => provider.create(order, step), null))));
  expect(cloud.compute.instances.size).toBe(10);
  expect(cloud.calls.filter(({ status }) => status === 403).length).toBeGreaterThan(0);
});

test("an answer that is lost for good, and a launch that goes on in another zone, make one machine", async () => {
  const { provider, config, cloud } = await site(
    { unseenMs: 60_000, faults: [{ call: "instances.insert", how: "drop-answer", times: 5 }] },
    compile({ small: {} }, { pool: { "availability-zones": ZONES } }),
  );
  let saved: unknown = null;
  const order = rig.order(config, NODE, { az: "us-central1-a" });
  const error = await failure(rig.create(provider, order, ({ save }) => (saved = save?.externalId ?? saved)));
  expect(error.kind).toBe("transient");
  expect(new Set(inserts().map(({ query }) => query.requestId)).size).toBe(1);
  // Another process: no list shows the machine yet, and the record names it.
  const next = await rig.open(config);
  const again = rig.order(config, NODE, { az: "us-central1-b", attempt: 2 });
  await rig.drive(rig.run((step) => next.create(again, step), saved as string));
  expect([...cloud.compute.instances.keys()]).toEqual([saved]);
});

test("spot machines are deleted when Google takes them back, and each machine after its limit", async () => {
  const { provider, config, cloud } = await site(
    {},
    compile({ small: { "use-spot": true, "max-run-duration": 3_600 }, plain: {} }),
  );
  const { externalId } = await rig.create(provider, rig.order(config, NODE));
  expect(bodyOf().scheduling).toEqual({
    ...{
      provisioningModel: "SPOT",
      instanceTerminationAction: "DELETE",
      maxRunDuration: { seconds: "3600" },
    },
    ...{ preemptible: true, automaticRestart: false, onHostMaintenance: "TERMINATE" },
  });
  const spot = [...config.pools[0]!.labels.values()][0]!;
  expect(provider.offers?.types?.of(spot)).toBe("e2-standard-4, spot");
  const [zone, name] = String(externalId).split("/");
  expect(cloud.compute.preempt(zone!, name!)).toBe(true);
  expect(await rig.drive(provider.find(rig.order(config, NODE).tag, SIGNAL, externalId))).toBe(undefined);
  const second = rig.order(config, "0000000043");
  await rig.create(provider, second);
  await rig.clock.advance(3_700_000);
  expect(instances(await rig.drive(provider.list(SIGNAL)))).toEqual([]);
});

test("the body has the pool's network, the key, user data, and labels as far as Google takes them", async () => {
  const pool = {
    ...{ name: "Main.1", network: "ci", "network-tags": ["ssh"], "public-ipv4": false },
    subnetwork: "projects/host/regions/us-central1/subnetworks/ci",
  };
  const label = { userdata: "#cloud-config\n", "service-account": "ci@x.iam.gserviceaccount.com" };
  const { provider, config } = await site({}, compile({ small: label }, { pool }));
  const machine = await rig.create(provider, rig.order(config, NODE));
  expect(machine).toMatchObject({ publicIpv4: null, interfaceIp: machine.privateIpv4 });
  const { metadata, labels, ...body } = bodyOf();
  const items = (metadata as { items: { key: string; value: string }[] }).items;
  expect(Object.fromEntries(items.map(({ key, value }) => [key, value]))).toMatchObject({
    ...{ nodepool_node_id: NODE, nodepool_pool_name: "Main.1", nodepool_provider_name: "gcp-west" },
    ...{ "ssh-keys": "ci:ssh-ed25519 AAAA", "user-data": "#cloud-config\n" },
  });
  // Upper case and dots are in metadata alone.
  expect(Object.keys(labels as object)).not.toContain("nodepool_pool_name");
  expect(body).toMatchObject({
    tags: { items: ["ssh"] },
    networkInterfaces: [{ network: "global/networks/ci", subnetwork: pool.subnetwork }],
    serviceAccounts: [{ email: "ci@x.iam.gserviceaccount.com" }],
    disks: [
      { boot: true, autoDelete: true, initializeParams: { diskType: expect.stringMatching(/pd-standard$/) } },
    ],
  });
});

test("a disk that outlived its machine is a leak with its node's tag; disks of others have none", async () => {
  const { provider, config, cloud } = await site();
  const order = rig.order(config, NODE);
  const machine = await rig.create(provider, order);
  for (const instance of cloud.compute.instances.values()) instance.disks[0]!.autoDelete = false;
  await rig.remove(provider, order, machine.externalId);
  const [disk] = await rig.drive(provider.list(SIGNAL));
  expect(disk).toMatchObject({ type: "disk", tag: order.tag, resources: { DISKS_TOTAL_GB: 10 } });
  await rig.drive(provider.removeResource(disk!, SIGNAL));
  await rig.clock.advance(5_000);
  expect(await rig.drive(provider.list(SIGNAL))).toEqual([]);
});

test("a stopped machine has ended and is deleted with its node; a console is read while there is one", async () => {
  const { provider, config, cloud } = await site();
  const order = rig.order(config, NODE);
  const { externalId } = await rig.create(provider, order);
  const console = () => rig.drive(provider.offers!.console!.read(order.tag, { externalId, signal: SIGNAL }));
  expect(await console()).toContain("login:");
  for (const instance of cloud.compute.instances.values()) instance.status = "TERMINATED";
  expect(instances(await rig.drive(provider.list(SIGNAL)))).toMatchObject([{ ended: true, tag: order.tag }]);
  await rig.remove(provider, order, externalId);
  expect(cloud.compute.instances.size).toBe(0);
  expect(await console()).toBe(null);
});

test("a provider without a zone chooses among those of its region", async () => {
  const config = compile({ small: {} }, { provider: { zone: undefined } });
  const { provider } = await site({ pageSize: 1 }, config);
  expect(await rig.drive(provider.offers!.zones!.list(config.pools[0]!, SIGNAL))).toEqual(ZONES);
  expect((await rig.create(provider, rig.order(config, NODE, { az: "us-central1-c" }))).az).toBe(
    "us-central1-c",
  );
});

const MISSING = { how: "refuse", status: 404, reason: "notFound" } as const;
const SITE = "projects/ci-project-1";
test.each([
  ["a proxy", { how: "page" }, "transient"],
  ["a redirect", { how: "page", status: 302 }, "transient"],
  ["the project", { ...MISSING, message: `The resource '${SITE}' was not found` }, "access"],
  [
    "the zone",
    { ...MISSING, message: `The resource '${SITE}/zones/us-central1-a' was not found` },
    "configuration",
  ],
] as const)("a machine is not taken for gone when %s says so", async (_, fault, kind) => {
  const { provider, config, cloud } = await site();
  const order = rig.order(config, NODE);
  const { externalId } = await rig.create(provider, order);
  const hidden = { call: "instances.aggregatedList", how: "empty", times: 99 } as const;
  cloud.set({ faults: [hidden, { call: "instances.get", ...fault }] });
  expect((await failure(rig.remove(await rig.open(config), order, externalId))).kind).toBe(kind);
});

test("a project that is not there closes the provider", async () => {
  const { provider, cloud } = await site();
  await rig.clock.advance(60_000);
  const message = `The resource '${SITE}' was not found`;
  cloud.set({ faults: [{ call: "regions.get", ...MISSING, message }] });
  expect((await failure(rig.drive(provider.quota(SIGNAL)))).kind).toBe("access");
});

test("a machine of Nodepool's record, which has no zone, is found and deleted where the provider has none", async () => {
  const { provider, config, cloud } = await site(
    {},
    compile({ small: {} }, { provider: { zone: undefined } }),
  );
  const order = rig.order(config, NODE, { az: "us-central1-c" });
  await rig.create(provider, order);
  const [machine] = cloud.compute.instances.values();
  const older = { nodepool_node_id: NODE, nodepool_provider_name: config.name };
  machine!.metadata.items = Object.entries(older).map(([key, value]) => ({ key, value }));
  machine!.name = "np-older";
  cloud.compute.instances.clear();
  cloud.compute.instances.set("us-central1-c/np-older", machine!);
  await rig.remove(await rig.open(config), order, "np-older");
  expect(cloud.compute.instances.size).toBe(0);
});

test("an operation that is not done when its wait ends is asked for again after a pause", async () => {
  const { provider, config, cloud } = await site({ waitMs: 1, operationMs: 20_000, capacity: [{ most: 0 }] });
  expect((await failure(rig.create(provider, rig.order(config, NODE)))).kind).toBe("capacity");
  expect(cloud.counts()["zoneOperations.wait"]).toBeLessThan(25);
});

test("a login that is refused or has no file is a fault of the credential; one without an answer passes", async () => {
  const server = await startGce();
  const folder = await mkdtemp(join(tmpdir(), "gce-login-"));
  const file = join(folder, "key.json");
  const account = {
    ...{ type: "external_account", audience: "//iam.googleapis.com/ci", token_url: `${server.url}/token` },
    ...{ subject_token_type: "urn:ietf:params:oauth:token-type:jwt", credential_source: { file } },
  };
  await writeFile(file, JSON.stringify(account));
  const login = () => thisHost.logIn(file).catch(({ code }) => code);
  try {
    expect(await login()).toMatchObject({ text: expect.stringContaining("ya29") });
    server.cloud.set({ faults: [{ call: "token", how: "refuse", status: 400, reason: "invalid_grant" }] });
    expect(await login()).toBe("cloud.configuration");
    server.cloud.set({ faults: [{ call: "token", how: "refuse", status: 503, times: 99 }] });
    expect(await login()).toBe("cloud.no_answer");
    await server.close();
    expect(await login()).toBe("cloud.no_answer");
    await rm(file);
    expect(await login()).toBe("cloud.configuration");
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
});

test("a suspended machine is there again at another address, if its zone has room then; Google refuses what cannot rest", async () => {
  const { provider, config, cloud } = await site();
  const order = rig.order(config, NODE);
  const machine = await rig.create(provider, order);
  await rig.suspend(provider, order);
  cloud.set({ capacity: [{ zone: "us-central1-a", most: 0 }] });
  expect(await failure(rig.wake(provider, order))).toMatchObject({ kind: "capacity" });
  cloud.set({ capacity: [] });
  const woken = await rig.wake(provider, order);
  const { publicIpv4, interfaceIp, ...same } = machine;
  expect(woken).toMatchObject(same);
  expect(woken.interfaceIp).toBe(woken.publicIpv4);
  expect([null, publicIpv4]).not.toContain(woken.publicIpv4);
  cloud.set({ faults: [{ call: "instances.suspend", how: "fail", reason: "UNSUPPORTED_OPERATION" }] });
  expect(await failure(rig.suspend(provider, order))).toMatchObject({ kind: "unsupported" });
  expect(await rig.wake(provider, order)).toEqual(woken);
});
