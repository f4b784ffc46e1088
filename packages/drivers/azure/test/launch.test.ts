import { DriverError, runSteps, type UploadOrder } from "@nodeyard/driver";
import { describe, expect, it, test, vi } from "vitest";
import { LOCATION, SUBSCRIPTION, startAzure, TENANT } from "../../../../testing/azure/index.ts";
import { thisHost } from "../src/edge/default.ts";
import { AUTH, AzureRig, compile, HERE, INSTALLATION, vhd } from "./rig.ts";

const { signal } = new AbortController();
const IMAGE_ID = `/subscriptions/${SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.Compute/images/i`;
const SUBNET = `/subscriptions/${SUBSCRIPTION}/resourceGroups/nodes/providers/Microsoft.Network/virtualNetworks/nodes/subnets/default`;
const bodyOf = (rig: AzureRig, call: string) =>
  // biome-ignore lint/suspicious/noExplicitAny: a body of the API
  rig.azure.calls.find((one) => one.call === call)?.body as any;
const kindOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => "no error",
    (thrown: unknown) => thrown,
  );
  return error instanceof DriverError ? `${error.kind}: ${error.message}` : error;
};

// docs/contract/checks.md, "Azure".
describe("a launch", () => {
  it("26: is one request with data in base64, Nodepool's names, and parts that go with the machine", async () => {
    const rig = new AzureRig();
    const label = {
      ...{ "custom-data": "#cloud-config\n", "user-data": "hello", "volume-size": 64 },
      ...{ tags: { team: "ci" }, "dynamic-tags": { tenant: "{request.tenant_name}", odd: "{request.none}" } },
    };
    const config = compile({ small: label }, { pool: { "public-ipv6": true } });
    const provider = await rig.open(config);
    const order = rig.orderOf(config, "small", 42, { az: "1" });
    const machine = await rig.create(provider, order);
    expect(machine).toMatchObject({ cloud: "Azure", region: LOCATION, az: "1", hostname: "np0000000042" });
    expect(machine.interfaceIp).toBe(machine.publicIpv4);
    // 30: what the size has, and not zeros.
    const need = await rig.drive(provider.need(order.label, new AbortController().signal));
    expect(need).toMatchObject({ cores: 2, ram: 8192, instances: 1 });
    const { properties, tags, zones } = bodyOf(rig, "PUT virtualMachines");
    expect(zones).toEqual(["1"]);
    expect(tags).toMatchObject({ team: "ci", tenant: "tenant-1", nodepool_node_id: "0000000042" });
    expect(properties.osProfile.customData).toBe(Buffer.from("#cloud-config\n").toString("base64"));
    expect(properties.userData).toBe(Buffer.from("hello").toString("base64"));
    expect(properties.storageProfile.osDisk).toEqual({
      ...{ createOption: "FromImage", deleteOption: "Delete", diskSizeGB: 64 },
    });
    const [nic] = properties.networkProfile.networkInterfaceConfigurations;
    expect([nic.name, nic.tags, nic.properties.deleteOption]).toEqual(["np0000000042-nic", tags, "Delete"]);
    const [v4, v6] = nic.properties.ipConfigurations;
    expect([v4.name, v6.name]).toEqual(["np0000000042-v4-config", "np0000000042-v6-config"]);
    const { publicIPAddressConfiguration: ip } = v6.properties;
    expect([ip.name, ip.properties.deleteOption]).toEqual(["np0000000042-v6-ip", "Delete"]);
    expect(ip.properties.publicIPAddressVersion).toBe("IPv6");
    await rig.remove(provider, order);
    expect(rig.azure.world.in("nodes").map(({ type }) => type)).toEqual(["Microsoft.Network/subnets"]);
  });

  it("27: takes the last of the images that fit, and images of galleries", async () => {
    const rig = new AzureRig();
    for (const name of ["ci-1", "ci-3", "ci-2"])
      rig.azure.world.make("nodes", "images", name, {
        ...{ location: LOCATION, tags: { os: "debian" }, properties: { provisioningState: "Succeeded" } },
      });
    rig.azure.world.make("nodes", "images", "ci-9", {
      tags: {},
      properties: { provisioningState: "Succeeded" },
    });
    const image = (name: string, source: object) => ({ name, username: "u", key: "k", ...source });
    const gallery = { "gallery-name": "g", name: "i" };
    const images = [
      image("filtered", { "image-filter": { tags: { os: "debian" } } }),
      image("community", { "community-gallery-image": gallery }),
      image("shared", { "shared-gallery-image": { ...gallery, version: "1.0.0" } }),
    ];
    const labels = Object.fromEntries(images.map(({ name }) => [name, { "cloud-image": name }]));
    const config = compile(labels, { provider: { "cloud-images": images } });
    const provider = await rig.open(config);
    for (const [at, { name }] of images.entries())
      await rig.create(provider, rig.orderOf(config, name, at + 1));
    const used = rig.azure.calls
      .filter(({ call }) => call === "PUT virtualMachines")
      // biome-ignore lint/suspicious/noExplicitAny: a body of the API
      .map(({ body }) => (body as any).properties.storageProfile.imageReference);
    expect(used).toEqual([
      { id: rig.azure.world.find("nodes", "images", "ci-3")!.id },
      { communityGalleryImageId: "/CommunityGalleries/g/Images/i" },
      { sharedGalleryImageId: "/SharedGalleries/g/Images/i/Versions/1.0.0" },
    ]);
  });

  it("28: has the password of the file, or one that nobody learns", async () => {
    const rig = new AzureRig();
    const image = (name: string, how: object) => ({
      name,
      username: "u",
      "image-id": IMAGE_ID,
      ...how,
    });
    rig.azure.world.make("nodes", "images", "i", { properties: {} }, IMAGE_ID);
    const images = [
      image("given", { password: "Given-Password-1", "generate-password": true }),
      image("made", { "generate-password": true }),
    ];
    const labels = { given: { "cloud-image": "given" }, made: { "cloud-image": "made" } };
    const config = compile(labels, { provider: { "cloud-images": images } });
    const provider = await rig.open(config);
    await rig.create(provider, rig.orderOf(config, "given", 1));
    await rig.create(provider, rig.orderOf(config, "made", 2));
    const [given, made] = rig.azure.calls
      .filter(({ call }) => call === "PUT virtualMachines")
      // biome-ignore lint/suspicious/noExplicitAny: a body of the API
      .map(({ body }) => (body as any).properties.osProfile.adminPassword);
    expect(given).toBe("Given-Password-1");
    expect(made).toHaveLength(64);
  });
});

describe("errors of Azure", () => {
  it.each([
    [{ capacity: [{ most: 0 }] }, "capacity: .*AllocationFailed"],
    [{ capacity: [{ most: 0, late: true }] }, "capacity: .*failed: Allocation failed.*AllocationFailed"],
    [{ others: { standardDSv5Family: 200 } }, "quota: .*standardDSv5Family quota"],
    [{ failure: { code: "OSProvisioningTimedOut", message: "no agent" } }, "timeout: .*no agent"],
    [{ restrictions: [{ size: "Standard_D2s_v5" }] }, "configuration: .*NotAvailableForSubscription"],
    [
      { faults: [{ call: "PUT virtualMachines", status: 403, code: "AuthorizationFailed" }] },
      "access: .*role",
    ],
    [
      { faults: [{ call: "PUT virtualMachines", status: 400, code: "RequestDisallowedByPolicy" }] },
      "configuration: ",
    ],
    [{ faults: [{ call: "PUT virtualMachines", status: 404, code: "NotFound" }] }, "configuration: "],
    [{ faults: [{ call: "PUT virtualMachines", status: 404, code: "ResourceGroupNotFound" }] }, "access: "],
  ])("%j is %s", async (settings, said) => {
    const rig = new AzureRig(settings);
    const config = compile();
    const provider = await rig.open(config);
    const order = rig.orderOf(config, "small", 1);
    expect(await kindOf(rig.create(provider, order))).toMatch(new RegExp(said));
    // A machine that has failed costs, so it goes.
    await rig.remove(provider, order);
    expect(rig.azure.world.all("virtualMachines")).toEqual([]);
  });

  it("a zone without room is no other's, and one that never has the size is not tried", async () => {
    const rig = new AzureRig({
      capacity: [{ zone: "1", most: 0 }],
      restrictions: [{ size: "Standard_D2s_v5", zone: "3" }],
    });
    const config = compile();
    const provider = await rig.open(config);
    const in1 = rig.orderOf(config, "small", 1, { az: "1" });
    expect(await rig.drive(provider.offers!.zones!.list(config.pools[0]!, signal))).toEqual(["1", "2"]);
    expect(await kindOf(rig.create(provider, in1))).toMatch(/^capacity: .*ZonalAllocationFailed/);
    expect(await kindOf(rig.create(provider, { ...in1, az: "3" }))).toMatch(/^unsupported: /);
    expect(await rig.create(provider, { ...in1, az: "2" })).toMatchObject({ az: "2" });
  });

  it("too many calls, and answers that are lost, make no second machine", async () => {
    const rig = new AzureRig({ buckets: { writes: [2, 1] }, bootMs: 5_000 });
    const config = compile();
    const provider = await rig.open(config);
    rig.azure.set({ faults: [{ call: "PUT virtualMachines", how: "drop-answer", times: 3 }] });
    const orders = Array.from({ length: 8 }, (_, at) => rig.orderOf(config, "small", at + 1));
    await rig.drive(Promise.all(orders.map((order) => rig.create(provider, order))));
    expect(rig.azure.world.all("virtualMachines")).toHaveLength(8);
    expect(rig.azure.calls.filter(({ status }) => status === 429).length).toBeLessThan(2 * orders.length);
  });

  it("a request that is repeated changes no machine that is there", async () => {
    const rig = new AzureRig({ faults: [{ call: "PUT virtualMachines", how: "drop-answer", times: 1 }] });
    const config = compile();
    const provider = await rig.open(config);
    const order = rig.orderOf(config, "small", 1);
    const launching = rig.run((context) => provider.create(order, context), null);
    await rig.clock.advance(0);
    const [vm] = rig.azure.world.all("virtualMachines");
    vm!.tags = { ...vm!.tags, since: "then" };
    await rig.drive(launching);
    expect(vm!.tags).toMatchObject({ nodepool_node_id: "0000000001", since: "then" });
  });

  it.each([
    [{ status: 404, code: "SubscriptionNotFound" }, "access: "],
    [{ status: 404, code: "ResourceGroupNotFound" }, "access: "],
    [{ status: 404, how: "page" as const }, "transient: .*with a page of HTML"],
  ])("%j does not say that a resource is gone", async (fault, said) => {
    const rig = new AzureRig();
    const config = compile();
    const { offers } = await rig.open(config);
    const tag = {
      installation: INSTALLATION,
      provider: config.name,
      image: "i",
      buildId: "b",
      uploadId: "1",
    };
    const how = { clock: rig.clock, signal, externalId: null, save: async () => {} };
    const remove = () => rig.drive(runSteps((context) => offers!.images!.remove(tag, context), how));
    expect(await kindOf(remove())).toBe("no error");
    rig.azure.set({ faults: [{ call: "*", ...fault }] });
    expect(await kindOf(remove())).toMatch(new RegExp(said));
  });
});

it("quotas are those of the labels' families and market, less what others use", async () => {
  const rig = new AzureRig({
    others: { standardDSv5Family: 50, cores: 60 },
    quotas: { standardBsFamily: 0 },
  });
  const config = compile({ small: {}, cheap: { "use-spot": true, "spot-max-price": 0.05 } });
  const provider = await rig.open(config);
  await rig.create(provider, rig.orderOf(config, "small", 1));
  const far = { hardwareProfile: { vmSize: "Standard_D2s_v5" }, provisioningState: "Succeeded" };
  rig.azure.world.make("nodes", "virtualMachines", "far", { location: "northeurope", properties: far });
  const cheap = rig.orderOf(config, "cheap", 2);
  await rig.create(provider, cheap);
  await rig.clock.advance(60_000);
  const limits = { instances: 25_000, "regional-vcpus": 290, standardDSv5Family: 150, lowPriorityCores: 100 };
  expect(await rig.drive(provider.quota(signal))).toEqual(limits);
  const listed = await rig.drive(provider.list(signal));
  expect(listed.find(({ id }) => id === "far")?.resources).toEqual({});
  const need = await rig.drive(provider.need(cheap.label, signal));
  expect(need).toEqual({ instances: 1, cores: 2, ram: 8192, lowPriorityCores: 2 });
  const { properties } = rig.azure.calls.filter(({ call }) => call === "PUT virtualMachines")[1]!.body as {
    properties: unknown;
  };
  expect(properties).toMatchObject({
    ...{ priority: "Spot", evictionPolicy: "Delete", billingProfile: { maxPrice: 0.05 } },
  });
  expect(provider.offers!.types!.of(cheap.label)).toBe("Standard_D2s_v5, spot");
});

it("parts that outlive their machine are leaks, also the disk, which has no tag", async () => {
  const rig = new AzureRig();
  const config = compile();
  const provider = await rig.open(config);
  await rig.create(provider, rig.orderOf(config, "small", 1));
  const { world } = rig.azure;
  const [vm] = world.all("virtualMachines");
  const types = async () =>
    (await rig.drive(provider.list(signal))).map(({ type, tag }) => [type, tag?.nodeId]);
  expect(await types()).toEqual([["instance", "0000000001"]]);
  // The interface keeps its address until it goes itself.
  world.delete(vm!, 0);
  for (const one of world.in("nodes")) {
    delete one.properties.virtualMachine;
    if (one.type.endsWith("/disks"))
      Object.assign(one, { managedBy: undefined }).properties.diskState = "Unattached";
  }
  expect(await types()).toEqual([
    ["nic", "0000000001"],
    ["pip", undefined],
    ["disk", "0000000001"],
  ]);
  const sweep = async () => {
    for (const one of await rig.drive(provider.list(signal)))
      if (one.tag !== null) await rig.drive(provider.removeResource(one, signal));
  };
  await sweep();
  expect(await types()).toEqual([["pip", "0000000001"]]);
  await sweep();
  expect(await types()).toEqual([]);
});

describe("a login", () => {
  const opened = (rig: AzureRig, provider: object = {}) => rig.open(compile({ small: {} }, { provider }));
  const host = { AZURE_SUBSCRIPTION_ID: SUBSCRIPTION, AZURE_AUTHORITY_HOST: HERE };

  it.each([
    ["a federated token", { clientId: "c", tenantId: TENANT, federatedTokenFile: "/token" }, {}],
    ["the metadata service", {}, { AZURE_POD_IDENTITY_AUTHORITY_HOST: HERE }],
    ["App Service", {}, { IDENTITY_ENDPOINT: `${HERE}/msi/token`, IDENTITY_HEADER: "header-1" }],
  ])("by %s", async (_, file, env) => {
    const rig = new AzureRig();
    rig.texts.set("/token", "eyJ.federated.token\n");
    const { clientId, clientSecret, tenantId, ...around } = AUTH;
    rig.texts.set("/auth.json", `\uFEFF${JSON.stringify({ ...around, ...file })}`);
    Object.assign(rig.env, env);
    expect(await kindOf(opened(rig))).toBe("no error");
  });

  it("by App Service passes by proxies", async () => {
    const azure = await startAzure();
    try {
      for (const name of ["HTTP_PROXY", "http_proxy"]) vi.stubEnv(name, "http://127.0.0.1:1");
      for (const name of ["NO_PROXY", "no_proxy"]) vi.stubEnv(name, undefined);
      vi.stubEnv("IDENTITY_ENDPOINT", `${azure.url}/msi/token`);
      const wire = thisHost.connect();
      const request = { method: "GET" as const, url: `${azure.url}/msi/token?resource=r`, signal };
      const answer = await wire.send({ ...request, headers: { "x-identity-header": "header-1" } });
      expect(answer.status).toBe(200);
      await wire.close();
    } finally {
      vi.unstubAllEnvs();
      await azure.close();
    }
  });

  it.each([
    [{ ...AUTH, clientSecret: "wrong-secret" }, {}, "access: .*AADSTS7000215"],
    [{ ...AUTH, subscriptionId: "" }, {}, "access: .*AZURE_SUBSCRIPTION_ID"],
    [{ ...AUTH, tenantId: undefined }, {}, "access: .*tenantId"],
    [{}, host, "access: .*resourceManagerEndpointUrl"],
  ])("with %j and %j is refused", async (file, env, said) => {
    const rig = new AzureRig();
    rig.texts.set("/auth.json", JSON.stringify(file));
    Object.assign(rig.env, env);
    expect(await kindOf(opened(rig))).toMatch(new RegExp(said));
  });

  it.each([
    [{ "resource-group": "none" }, "access: .*ResourceGroupNotFound"],
    [{ network: "none" }, "configuration: there is no subnet"],
    [{ network: { network: "nodes", subnet: "none" } }, "configuration: there is no subnet"],
    [
      { network: undefined, "subnet-id": SUBNET.replace("Network", "Other") },
      "configuration: .*of no known service",
    ],
    [{ network: undefined, "subnet-id": SUBNET.toLowerCase() }, "no error"],
  ])("to %j: %s", async (keys, said) => {
    expect(await kindOf(opened(new AzureRig(), keys))).toMatch(new RegExp(`^${said}`));
  });

  it("of another subscription than the provider's is refused", async () => {
    const rig = new AzureRig();
    const provider = await opened(rig);
    rig.texts.set("/auth.json", JSON.stringify({ ...AUTH, subscriptionId: "another" }));
    await rig.clock.advance(3_600_000);
    expect(await kindOf(rig.drive(provider.list(signal)))).toMatch(/^access: .*are for another now/);
    expect(rig.azure.calls.filter(({ path }) => path.includes("another"))).toEqual([]);
  });
});

test("29: an upload writes the pages with data only, goes on after a crash, and a page that fails fails it", async () => {
  const rig = new AzureRig({ operationMs: 4_000 });
  const data = vhd(9);
  rig.files.set("/image.vhd", data);
  const config = compile({ small: {} }, { provider: { diskimages: [{ name: "conformance" }] } });
  const provider = await rig.open(config);
  const store = provider.offers!.images!;
  const tag = { installation: INSTALLATION, provider: config.name, image: "conformance", buildId: "b1" };
  const order = (uploadId: string): UploadOrder => ({
    ...{ tag: { ...tag, uploadId }, name: "conformance-1", file: "/image.vhd", format: "vhd" },
    ...{ size: data.byteLength, sha256: "", md5: "", metadata: { os: "linux", extra: "tag" }, own: {} },
    progress() {},
  });
  const how = { clock: rig.clock, signal, externalId: null, save: async () => {} };
  const upload = (id: string) =>
    rig.drive(runSteps((context) => store.upload(order(id), context), { ...how, externalId: null }));
  const name = String(await upload("0000000001"));
  const image = rig.azure.world.find("nodes", "images", name)!;
  expect(image.tags).toMatchObject({ os: "linux", extra: "tag", nodepool_upload_id: "0000000001" });
  expect(image.properties.storageProfile.zoneResilient).toBe(true);
  const { sha256, bytes } = rig.azure.blobs.inspect(image)!;
  expect(sha256).toBe((await import("node:crypto")).createHash("sha256").update(data).digest("hex"));
  // The first MiB, two pages in the middle, and the footer.
  expect(bytes).toBe((1 << 20) + 1_024 + 512);
  const { sig = "" } = rig.azure.calls.find(({ call }) => call === "PUT pages")!.query;
  expect(new DriverError("transient", `?sig=${encodeURIComponent(sig)} (${sig})`).message).toBe(
    "?sig=(secret) ((secret))",
  );
  const calls = rig.azure.calls.map(({ call }) => call).filter((call) => !call.startsWith("GET"));
  expect(calls.filter((call) => call !== "PUT pages")).toEqual([
    ...["PUT disks", "POST disks/beginGetAccess", "POST disks/endGetAccess", "PUT images", "DELETE disks"],
  ]);
  await rig.clock.advance(10_000);
  await rig.drive(provider.list(signal));
  expect(rig.azure.world.all("disks")).toEqual([]);
  rig.azure.set({ faults: [{ call: "PUT pages", status: 400, code: "Md5Mismatch" }] });
  expect(await kindOf(upload("0000000002"))).toMatch(/Md5Mismatch/);
  expect(rig.azure.world.all("images")).toHaveLength(1);
  // A policy replaces its tags: it is waited for, and is still the one of this upload.
  image.tags = { policy: "costs" };
  image.properties.provisioningState = "Updating";
  rig.clock.setTimer(60_000, () => {
    image.properties.provisioningState = "Succeeded";
  });
  expect(await upload("0000000001")).toBe(name);
  const removed = { ...tag, uploadId: "0000000001" };
  await rig.drive(runSteps((context) => store.remove(removed, context), how));
  await rig.clock.advance(10_000);
  expect(rig.azure.world.all("images")).toEqual([]);
});

test("a suspended machine is deallocated, and starts at its addresses, if Azure has room then; a lost answer is no error", async () => {
  const rig = new AzureRig({ bootMs: 5_000, deletionMs: 5_000 });
  const config = compile();
  const provider = await rig.open(config);
  const order = rig.orderOf(config, "small", 42, { az: "1" });
  const machine = await rig.create(provider, order);
  const vm = rig.azure.world.find("nodes", "virtualMachines", String(machine.externalId))!;
  rig.azure.set({ faults: [{ call: "POST virtualMachines/deallocate", how: "drop-answer", times: 1 }] });
  await rig.suspend(provider, order);
  expect(rig.azure.world.deallocated.has(vm)).toBe(true);
  expect(await rig.wake(provider, order)).toEqual(machine);
  expect(rig.azure.world.deallocated.has(vm)).toBe(false);
  await rig.suspend(provider, order);
  rig.azure.set({ capacity: [{ zone: "1", most: 0 }] });
  expect(await kindOf(rig.wake(provider, order))).toMatch(/^capacity: .*ZonalAllocationFailed/);
  await rig.remove(provider, order);
});
