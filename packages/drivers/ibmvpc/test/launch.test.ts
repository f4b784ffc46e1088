import { DriverError, type Resource } from "@nodeyard/driver";
import { afterEach, describe, expect, it, test } from "vitest";
import { API_KEY, COMPUTE_TOKEN, type IbmSettings } from "../../../../testing/ibmvpc/index.ts";
import type { IbmProviderConfig } from "../src/index.ts";
import { compile, IbmRig } from "./rig.ts";

const NODE = "0000000042";
const SIGNAL = new AbortController().signal;
const PUBLIC = { "public-ipv4": true };
const ZONES = {
  zone: undefined,
  subnet: undefined,
  subnets: ["sn-nodepool", "sn-nodepool-2", "sn-nodepool-3"],
};

let rig: IbmRig;
afterEach(() => rig.stop());

async function site(settings: Partial<IbmSettings> = {}, config: IbmProviderConfig = compile()) {
  rig = new IbmRig(settings);
  return { config, cloud: rig.cloud, provider: await rig.open(config) };
}
const kindOf = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => "no error",
    (thrown: unknown) => thrown,
  );
  return error instanceof DriverError ? `${error.kind}: ${error.message}` : String(error);
};
const writes = () =>
  rig.cloud.calls.map(({ call }) => call).filter((call) => /^(POST|PUT|PATCH|DELETE) (?!token)/.test(call));
const bodyOf = (call: string) => rig.cloud.calls.find((one) => one.call === call)?.body as object;
const machines = (all: readonly Resource[]) => all.filter(({ type }) => type === "instance");
const listed = (provider: Awaited<ReturnType<typeof site>>["provider"]) => rig.drive(provider.list(SIGNAL));

// docs/contract/checks.md, "IBM".
test("34: a machine gets an address of its own, which leaves it first, for another node; that has it before its machine", async () => {
  const { provider, config, cloud } = await site({}, compile({ small: {} }, { pool: PUBLIC }));
  expect([...cloud.vpc.groups.values()]).toEqual(["Default", "np_ibm-south_main"]);
  const order = rig.order(config, NODE);
  const machine = await rig.create(provider, order);
  const attach = "PUT instances/*/network_interfaces/*/floating_ips/*";
  expect(writes()).toEqual(["POST resource_groups", "POST instances", "POST floating_ips"]);
  expect(machine).toMatchObject({
    ...{
      cloud: "IBM",
      region: "us-south",
      az: "us-south-1",
      hostname: expect.stringMatching(/^np0000000042-/),
    },
  });
  const need = await rig.drive(provider.need(order.label, SIGNAL));
  expect(need).toEqual({ instances: 1, cores: 2, ram: 8_192 });
  expect(machine.interfaceIp).toBe(machine.publicIpv4);
  expect(machine.privateIpv4).toMatch(/^10\./);
  await rig.remove(provider, order, machine.externalId);
  expect(writes().slice(3)).toEqual(["PATCH floating_ips/*", "DELETE instances/*"]);
  await rig.clock.advance(10_000);
  const again = await rig.create(provider, rig.order(config, "0000000043"));
  expect(again.publicIpv4).toBe(machine.publicIpv4);
  expect(writes().slice(5)).toEqual(["PATCH floating_ips/*", "POST instances", attach]);
  expect(cloud.vpc.floatingIps.size).toBe(1);
});

test("35: a subnet in another zone than the pool's, or in another VPC, is said when the provider opens", async () => {
  const opened = (pool: object, provider: object = {}) => {
    rig = new IbmRig();
    return kindOf(rig.open(compile({ small: {} }, { pool, provider })));
  };
  expect(await opened({ subnet: "sn-nodepool-2" })).toMatch(/^access: .*is in us-south-2, and not in zone/);
  expect(await opened({ subnet: "sn-other" })).toMatch(/^access: .*VPC nodepool has no subnet sn-other/);
  expect(await opened({}, { vpc: "none" })).toMatch(/^access: .*there is no VPC none/);
});

test("37: machines in resource groups that the provider does not know are no error of a listing", async () => {
  const { provider, cloud } = await site();
  cloud.vpc.foreign("theirs");
  for (const one of cloud.vpc.instances.values()) Object.assign(one, { group: cloud.vpc.group("new").id });
  expect(await listed(provider)).toEqual([
    {
      type: "instance",
      id: expect.any(String),
      tag: null,
      resources: { instances: 1, cores: 2, ram: 4_096 },
    },
  ]);
});

test("the body is that of Nodepool, with the names of images and keys looked up, and spot machines go when IBM takes them", async () => {
  const images = [
    {
      name: "newest",
      username: "ci",
      "image-filter": { "operating-system": { family: "debian", version: "13" } },
    },
    { name: "href", username: "ci", "image-href": "https://us-south.iaas.cloud.ibm.com/v1/images/none" },
  ];
  const labels = {
    newest: { "cloud-image": "newest", "user-data": "#cloud-config\n", "use-spot": true },
    href: { "cloud-image": "href" },
  };
  const { provider, config, cloud } = await site(
    {},
    compile(labels, { provider: { "cloud-images": images } }),
  );
  const [newest, href] = [...config.pools[0]!.labels.values()];
  const order = rig.order(config, NODE, { label: newest! });
  const { externalId } = await rig.create(provider, order);
  const image = [...cloud.vpc.images.values()].find(({ name }) => name.includes("13-1"))!;
  expect(bodyOf("POST instances")).toEqual({
    ...{ name: expect.any(String), profile: { name: "bx2-2x8" }, resource_group: { id: expect.any(String) } },
    ...{ vpc: { id: "r006-vpc-nodepool" }, zone: { name: "us-south-1" }, image: { id: image.id }, keys: [] },
    primary_network_interface: { name: "eth0", subnet: { id: "r006-subnet-sn-nodepool" } },
    boot_volume_attachment: {
      delete_volume_on_instance_delete: true,
      volume: { name: expect.any(String), profile: { name: "general-purpose" } },
    },
    ...{
      user_data: "#cloud-config\n",
      availability: { class: "spot" },
      availability_policy: { preemption: "delete" },
    },
  });
  expect(provider.offers?.types?.of(newest!)).toBe("bx2-2x8, spot");
  cloud.vpc.preempt(cloud.vpc.instances.get(String(externalId))!);
  expect(machines(await listed(provider))).toMatchObject([{ ended: true }]);
  expect(await kindOf(rig.create(provider, rig.order(config, "0000000043", { label: href! })))).toMatch(
    /^configuration: .*image not found/,
  );
});

describe("errors of IBM", () => {
  it.each<readonly [Partial<IbmSettings>, string]>([
    [{ capacity: [{ most: 0 }] }, "capacity: .*went to failed: Insufficient capacity"],
    [{ quotas: { vcpu: 1 } }, "quota: .*will put user over quota"],
    [{ failure: { code: "cannot_start_storage", message: "no storage" } }, "transient: .*no storage"],
    [{ failure: { code: "encryption_key_deleted", message: "the key" } }, "configuration: .*the key"],
    [
      { faults: [{ call: "POST instances", how: "refuse", status: 403, code: "not_authorized" }] },
      "access: .*docs connect-ibm",
    ],
    [
      {
        faults: [
          { call: "POST instances", how: "refuse", status: 404, code: "not_found", message: "VPC not found" },
        ],
      },
      "configuration: .*VPC not found",
    ],
    [
      { faults: [{ call: "POST instances", how: "refuse", status: 400, code: "bad_field" }] },
      "configuration: ",
    ],
    [{ faults: [{ call: "POST instances", how: "page", times: 9 }] }, "transient: .*with a page of HTML"],
    [{ faults: [{ call: "POST instances", how: "page", status: 302, times: 9 }] }, "transient: "],
  ])("%j is %s", async (settings, said) => {
    const { provider, config, cloud } = await site(settings);
    const order = rig.order(config, NODE);
    expect(await kindOf(rig.create(provider, order))).toMatch(new RegExp(said));
    // A machine that has failed is paid for, so it goes.
    await rig.remove(provider, order);
    expect(cloud.vpc.instances.size).toBe(0);
    expect(cloud.vpc.volumes.size).toBe(0);
  });

  it("a quota of floating IPs is one of the account", async () => {
    const { provider, config, cloud } = await site(
      { quotas: { floating_ips: 0 } },
      compile({ small: {} }, { pool: PUBLIC }),
    );
    const order = rig.order(config, NODE);
    expect(await kindOf(rig.create(provider, order))).toMatch(/^quota: /);
    await rig.remove(provider, order);
    expect(cloud.vpc.instances.size).toBe(0);
  });

  it.each([
    ["a proxy", { how: "page" }, "transient"],
    [
      "a group that the credential may not see",
      { how: "refuse", status: 403, code: "not_authorized" },
      "access",
    ],
    ["something else that is missing", { how: "refuse", status: 404, code: "vpc_not_found" }, "not-found"],
  ] as const)("a machine is not taken for gone when %s says so", async (_, fault, kind) => {
    const { provider, config, cloud } = await site();
    const order = rig.order(config, NODE);
    const { externalId } = await rig.create(provider, order);
    const hidden = { call: "GET instances", how: "empty", times: 99 } as const;
    cloud.set({ faults: [hidden, { call: "GET instances/*", times: 9, ...fault }] });
    expect(await kindOf(rig.remove(await rig.open(config), order, externalId))).toMatch(`${kind}: `);
    expect(cloud.vpc.instances.size).toBe(1);
  });

  it("pages without an end are an odd answer, and the token goes to no other host", async () => {
    const { provider, cloud } = await site();
    cloud.vpc.foreign("theirs");
    cloud.set({ faults: [{ call: "GET instances", how: "loop", times: 99 }] });
    expect(await kindOf(listed(provider))).toMatch(/^transient: .*GET .instances: a page repeats/);
    expect(new Set(cloud.calls.map(({ host }) => host))).not.toContain("elsewhere.example");
    // Nor is a page the last one that does not say where the next one is.
    cloud.set({ faults: [{ call: "GET instances", how: "nowhere", times: 99 }] });
    await rig.clock.advance(60_000);
    expect(await kindOf(listed(provider))).toMatch(/^transient: .*not from where/);
  });

  it("too many calls, and answers that are lost, make no second machine and no second address", async () => {
    const { provider, config, cloud } = await site(
      { bucket: [4, 2] },
      compile({ small: {} }, { pool: PUBLIC }),
    );
    cloud.set({
      faults: [
        { call: "POST instances", how: "drop-answer", times: 3 },
        { call: "POST floating_ips", how: "drop-answer", times: 3 },
      ],
    });
    const orders = Array.from({ length: 8 }, (_, at) => rig.order(config, String(at + 1).padStart(10, "0")));
    await rig.drive(
      Promise.all(orders.map((order) => rig.run((step) => provider.create(order, step), null))),
    );
    expect([cloud.vpc.instances.size, cloud.vpc.floatingIps.size]).toEqual([8, 8]);
  });
});

describe("zones", () => {
  it("are those of the pool's subnets; one without room is no other's, and one without a subnet is not tried", async () => {
    const config = compile({ small: {} }, { pool: { ...ZONES, ...PUBLIC } });
    const { provider, cloud } = await site({ capacity: [{ zone: "us-south-1", most: 0 }] }, config);
    const zones = ["us-south-1", "us-south-2", "us-south-3"];
    expect(await rig.drive(provider.offers!.zones!.list(config.pools[0]!, SIGNAL))).toEqual(zones);
    const order = rig.order(config, NODE, { az: "us-south-1" });
    expect(await kindOf(rig.create(provider, order))).toMatch(/^capacity: /);
    // An address of the first attempt would be of the first zone, and paid for.
    const machine = await rig.create(provider, { ...order, az: "us-south-2", attempt: 2 });
    expect(machine).toMatchObject({ az: "us-south-2", publicIpv4: expect.any(String) });
    expect(
      [...cloud.vpc.floatingIps.values()].map(({ zone, machine: at }) => [zone, at !== undefined]),
    ).toEqual([["us-south-2", true]]);
    expect(await kindOf(rig.create(provider, rig.order(config, "0000000043", { az: "eu-de-1" })))).toMatch(
      /^unsupported: /,
    );
  });
});

describe("addresses", () => {
  const config = compile({ small: {} }, { pool: PUBLIC });

  it("that somebody else has, or another provider, are left alone", async () => {
    const { provider, cloud } = await site({}, config);
    const theirs = await rig.open(config, { installation: "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02" });
    const order = rig.order(config, NODE);
    await rig.create(theirs, {
      ...order,
      tag: { ...order.tag, installation: "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02" },
    });
    await rig.remove(theirs, {
      ...order,
      tag: { ...order.tag, installation: "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02" },
    });
    const [free] = cloud.vpc.floatingIps.values();
    expect(free!.name).toMatch(/^npfree-/);
    await rig.create(provider, order);
    expect(cloud.vpc.floatingIps.size).toBe(2);
    expect(free!.name).toMatch(/^npfree-/);
  });

  it("of a node of another Nodepool's, which has the same id, stay its own", async () => {
    const { provider, cloud } = await site({}, config);
    const order = rig.order(config, NODE);
    await rig.create(provider, order);
    const [theirs] = cloud.vpc.floatingIps.values();
    for (const one of [...cloud.vpc.instances.values(), ...cloud.vpc.volumes.values(), theirs!])
      one.name = "np0000000042";
    await rig.clock.advance(5_000);
    await rig.create(await rig.open(config), order);
    expect(cloud.vpc.floatingIps.size).toBe(2);
    expect(theirs!.name).toBe("np0000000042");
  });

  // In one process the second does not even try; the other launcher's claim shows late.
  it.each([
    ["another launcher", true, 2],
    ["another launch of this one", false, 1],
  ])("that %s took at the same moment are not taken from it", async (_, isOther, claims) => {
    const { provider, cloud } = await site({ startMs: 5_000 }, config);
    const order = rig.order(config, NODE);
    await rig.create(provider, order);
    await rig.remove(provider, order);
    await rig.clock.advance(10_000);
    const other = isOther ? await rig.open(config) : provider;
    const before = cloud.calls.length;
    const orders = ["0000000043", "0000000044"].map((node) => rig.order(config, node));
    const both = await rig.drive(
      Promise.all([provider, other].map((one, at) => rig.run((step) => one.create(orders[at]!, step), null))),
    );
    expect(cloud.calls.slice(before).filter(({ call }) => call.startsWith("PATCH"))).toHaveLength(claims);
    expect(new Set(both.map(({ publicIpv4 }) => publicIpv4)).size).toBe(2);
    // What each was told is what it has.
    for (const { externalId, publicIpv4 } of both) {
      const ip = [...cloud.vpc.floatingIps.values()].find(({ address }) => address === publicIpv4);
      expect(ip?.machine).toBe(externalId);
    }
  });

  it("of nodes that are gone wait for others, and are deleted when nobody had one for a week", async () => {
    const { provider, cloud } = await site({}, config);
    const order = rig.order(config, NODE);
    await rig.create(provider, order);
    // Somebody deletes the machine: its address is left over.
    for (const one of cloud.vpc.instances.values()) cloud.vpc.preempt(one);
    await rig.clock.advance(10_000);
    const addresses = async () => (await listed(provider)).filter(({ type }) => type === "floatingip");
    const [left] = await addresses();
    expect(left).toMatchObject({ tag: order.tag, resources: {} });
    await rig.drive(provider.removeResource(left!, SIGNAL));
    expect(await addresses()).toEqual([]);
    expect(cloud.vpc.floatingIps.size).toBe(1);
    await rig.clock.advance(8 * 86_400_000);
    const [idle, ...more] = await addresses();
    expect(more).toEqual([]);
    expect(idle).toMatchObject({ tag: order.tag });
    await rig.drive(provider.removeResource(idle!, SIGNAL));
    expect(cloud.vpc.floatingIps.size).toBe(0);
  });

  it("that a person attached somewhere stay there", async () => {
    const { provider, cloud } = await site({}, config);
    const order = rig.order(config, NODE);
    await rig.create(provider, order);
    cloud.vpc.foreign("theirs");
    const [ip] = cloud.vpc.floatingIps.values();
    const theirs = [...cloud.vpc.instances.values()].find(({ name }) => name === "theirs")!;
    ip!.machine = theirs.id;
    await rig.clock.advance(5_000);
    const again = await rig.create(provider, order);
    expect(again.publicIpv4).not.toBe(ip!.address);
    expect(ip!.machine).toBe(theirs.id);
  });
});

test("what the provider names and IBM does not have is no label's fault", async () => {
  const { provider, config, cloud } = await site();
  await rig.drive(provider.need([...config.pools[0]!.labels.values()][0]!, SIGNAL));
  cloud.vpc.groups.delete([...cloud.vpc.groups].find(([, name]) => name.startsWith("np_"))![0]);
  expect(await kindOf(rig.create(provider, rig.order(config, NODE)))).toMatch(/^access: .*resource_group.id/);
});

test("a disk that outlived its machine is a leak with its node's tag", async () => {
  const { provider, config, cloud } = await site();
  const order = rig.order(config, NODE);
  const { externalId } = await rig.create(provider, order);
  for (const one of cloud.vpc.instances.values()) Object.assign(one, { keeps: true });
  await rig.remove(provider, order, externalId);
  // The next attempt has the same names: it fails at once, and waits for no machine that nobody makes.
  expect(await kindOf(rig.create(provider, order))).toMatch(/^transient: volume .* is still there/);
  const [disk] = await listed(provider);
  expect(disk).toMatchObject({ type: "volume", tag: { ...order.tag, pool: "main" } });
  await rig.drive(provider.removeResource(disk!, SIGNAL));
  expect(await listed(provider)).toEqual([]);
});

test("a machine of Nodepool's is found by the name in its record, and deleted with its address", async () => {
  const { provider, config, cloud } = await site({}, compile({ small: {} }, { pool: PUBLIC }));
  const order = rig.order(config, NODE);
  await rig.create(provider, order);
  for (const one of [...cloud.vpc.instances.values(), ...cloud.vpc.floatingIps.values()])
    one.name = "np0000000042";
  await rig.clock.advance(5_000);
  await rig.remove(await rig.open(config), order, "np0000000042");
  expect(cloud.vpc.instances.size).toBe(0);
  expect([...cloud.vpc.floatingIps.values()][0]!.name).toMatch(/^npfree-/);
});

test("a machine that is being made is deleted when it can be", async () => {
  const { provider, config, cloud } = await site({ startMs: 30_000 });
  const order = rig.order(config, NODE);
  const launching = rig.run((step) => provider.create(order, step), null);
  launching.catch(() => {});
  await rig.clock.advance(2_000);
  await rig.remove(await rig.open(config), order);
  expect(cloud.vpc.instances.size).toBe(0);
  await kindOf(rig.drive(launching));
});

describe("a login", () => {
  const opened = (text: string, env: Readonly<Record<string, string>> = {}) => {
    rig = new IbmRig();
    rig.texts.set("/ibm.env", text);
    rig.texts.set("/token", `${COMPUTE_TOKEN}\n`);
    Object.assign(rig.env, env);
    return kindOf(rig.open(compile()));
  };

  it.each([
    ["an API key", `# ours\nVPC_APIKEY=${API_KEY}\n`],
    [
      "a trusted profile, by a compute resource",
      "VPC_AUTH_TYPE=container\nVPC_IAM_PROFILE_NAME=ci\nVPC_CR_TOKEN_FILENAME=/token",
    ],
    ["a trusted profile, by the metadata service", "VPC_AUTH_TYPE=vpc\nVPC_IAM_PROFILE_ID=Profile-1"],
  ])("by %s", async (_, text) => {
    expect(await opened(text)).toBe("no error");
  });

  it.each([
    ["VPC_APIKEY=wrong-key-of-somebody", "access: .*could not be found"],
    ["VPC_AUTH_TYPE=iam", "access: .*there is no API key"],
    ["VPC_AUTH_TYPE=basic", "access: .*write iam, container or vpc"],
    ["", "access: .*there is no credential"],
    [`VPC_APIKEY=${API_KEY}\nVPC_URL=us-south`, "access: .*VPC_URL is us-south, which is no address"],
  ])("with %j is refused: %s", async (text, said) => {
    const error = await opened(text);
    expect(error).toMatch(new RegExp(said));
    expect(error).not.toContain("wrong-key-of-somebody");
  });

  it("by the environment, and by a key that was replaced; one of another account is refused", async () => {
    rig = new IbmRig();
    Object.assign(rig.env, { VPC_APIKEY: API_KEY });
    const provider = await rig.open(compile({ small: {} }, { provider: { "credentials-file": undefined } }));
    expect(provider.place?.()).toMatchObject({ region: "us-south", account: expect.any(String) });
    rig.env.VPC_URL = "https://eu-de.iaas.cloud.ibm.com/v1";
    await rig.clock.advance(3_600_000);
    expect(await kindOf(rig.drive(provider.list(SIGNAL)))).toMatch(/^access: .*are for https:..eu-de.* now/);
    delete rig.env.VPC_URL;
    rig.cloud.account = "another";
    await rig.clock.advance(3_600_000);
    expect(await kindOf(rig.drive(provider.list(SIGNAL)))).toMatch(/^access: .*are for account another now/);
  });

  it("that gets no answer passes", async () => {
    rig = new IbmRig();
    rig.cloud.set({ faults: [{ call: "POST token", how: "refuse", status: 503, times: 9 }] });
    expect(await kindOf(rig.open(compile()))).toMatch(/^transient: /);
  });
});

test("a suspended machine is stopped, and starts at its addresses, if IBM has room then", async () => {
  const pool = { "public-ipv4": true };
  const { provider, config, cloud } = await site(
    { startMs: 5_000, stopMs: 5_000 },
    compile({ small: {} }, { pool }),
  );
  const order = rig.order(config, NODE);
  const machine = await rig.create(provider, order);
  const one = cloud.vpc.instances.get(String(machine.externalId))!;
  await rig.suspend(provider, order);
  expect(cloud.vpc.statusOf(one)).toBe("stopped");
  expect(await rig.wake(provider, order)).toEqual(machine);
  await rig.suspend(provider, order);
  cloud.set({ capacity: [{ most: 0 }] });
  expect(await kindOf(rig.wake(provider, order))).toMatch(/^capacity: .*cannot_start_capacity/);
  await rig.remove(provider, order);
});
