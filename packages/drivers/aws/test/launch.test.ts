import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { requireAws } from "../../../../testing/aws/index.ts";
import { AwsRig, compile } from "./rig.ts";

// Numbers in titles are those of docs/contract/checks.md, "AWS".

/** What the old launcher sent and got, by the calls that arrive. */
describe.skipIf(requireAws())("launches", () => {
  let rig: AwsRig;
  beforeAll(async () => {
    rig = await AwsRig.start();
  });
  afterEach(async () => {
    await rig.closeProviders();
    await rig.server.reset();
    await rig.server.forgetCalls();
  });
  afterAll(() => rig?.stop());

  let last = 0;
  const nextId = () => String(++last).padStart(10, "0");
  const launch = async (label: object, options: Parameters<typeof compile>[2] = {}) => {
    const config = compile(rig.site, { small: label }, options);
    const provider = await rig.open(config);
    const order = rig.order(config, "small", nextId());
    const saved: unknown[] = [];
    const machine = await rig.create(provider, order, saved);
    const calls = await rig.server.calls("ec2.RunInstances");
    return { provider, order, machine, saved, calls, params: calls[0]?.params ?? {} };
  };

  test("1, 2, 3: one machine: one call, tags on instance and volume, addresses, zone and resources", async () => {
    const { machine, calls, params, order, provider } = await launch({
      tags: { Name: "x", team: "qa" },
      "dynamic-tags": { tenant: "Tenant is {request.tenant_name}", broken: "{request.nothing}" },
    });
    expect(calls).toHaveLength(1);
    expect(params).toMatchObject({ MinCount: "1", MaxCount: "1", InstanceType: "t3.medium" });
    const tags = tagsOf(params);
    expect(Object.keys(tags)).toEqual(["instance", "volume", "network-interface"]);
    for (const one of Object.values(tags))
      expect(one).toEqual({
        Name: order.hostname,
        team: "qa",
        tenant: "Tenant is tenant-1",
        nodepool_node_id: order.tag.nodeId,
        nodepool_pool_name: "main",
        nodepool_provider_name: "ec2-us-west-2",
        nodeyard_installation: order.tag.installation,
      });
    expect(machine).toMatchObject({
      externalId: { instance: expect.stringMatching(/^i-/) },
      cloud: "AWS",
      region: "us-west-2",
      az: expect.stringMatching(/^us-west-2[a-z]$/),
      resources: { cores: 1, instances: 1, ram: 4096, "L-1216C47A": 2 },
    });
    expect(machine.interfaceIp).toBe(machine.publicIpv4);
    expect(machine.privateIpv4).not.toBe(machine.publicIpv4);
    await rig.remove(provider, order);
  });

  test("6: what the pool and the label do not say is not sent", async () => {
    const { params } = await launch({});
    const sent = Object.keys(params).join(" ");
    for (const absent of [
      "MetadataOptions",
      "InstanceMarketOptions",
      "UserData",
      "IamInstanceProfile",
      "Ipv6AddressCount",
    ])
      expect(sent).not.toContain(absent);
  });

  test("3: without a tenant a template says None", async () => {
    const config = compile(rig.site, {
      small: { "dynamic-tags": { tenant: "Tenant is {request.tenant_name}" } },
    });
    const provider = await rig.open(config);
    const order = rig.order(config, "small", nextId());
    await rig.create(provider, { ...order, request: { ...order.request, tenantName: null } });
    expect(tagsOf((await rig.server.calls("ec2.RunInstances"))[0]!.params).instance?.tenant).toBe(
      "Tenant is None",
    );
  });

  test("4: no public address where the pool wants none", async () => {
    const { machine, params } = await launch({}, { pool: { "public-ip-address": false } });
    expect(params["NetworkInterface.1.AssociatePublicIpAddress"]).toBe("false");
    expect(machine.publicIpv4).toBeNull();
    expect(machine.interfaceIp).toBe(machine.privateIpv4);
  });

  test("5: an IPv6 address is that of the first interface", async () => {
    const { machine, params } = await launch({}, { pool: { "public-ipv6": true } });
    expect(params["NetworkInterface.1.Ipv6AddressCount"]).toBe("1");
    expect(machine.publicIpv6).toContain(":");
  });

  test("6, 7, 11: user data is encoded once; IMDSv2, spot, profile, volume and encryption go along", async () => {
    const { params } = await launch({
      userdata: "fake-user-data",
      imdsv2: "required",
      "use-spot": true,
      "iam-instance-profile": { name: rig.site.instanceProfile },
      "volume-type": "gp3",
      "volume-size": 40,
      iops: 4000,
      throughput: 250,
      "volume-encrypted": true,
    });
    expect(params).toMatchObject({
      UserData: Buffer.from("fake-user-data").toString("base64"),
      "MetadataOptions.HttpTokens": "required",
      "MetadataOptions.HttpEndpoint": "enabled",
      "InstanceMarketOptions.MarketType": "spot",
      "InstanceMarketOptions.SpotOptions.SpotInstanceType": "one-time",
      "InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior": "terminate",
      "IamInstanceProfile.Name": rig.site.instanceProfile,
      "BlockDeviceMapping.1.Ebs.VolumeType": "gp3",
      "BlockDeviceMapping.1.Ebs.VolumeSize": "40",
      "BlockDeviceMapping.1.Ebs.Iops": "4000",
      "BlockDeviceMapping.1.Ebs.Throughput": "250",
      "BlockDeviceMapping.1.Ebs.Encrypted": "true",
      "BlockDeviceMapping.1.Ebs.DeleteOnTermination": "true",
    });
  });

  test("an answer that is lost: the same machine, by the SDK's own next try and by another process", async () => {
    const config = compile(rig.site);
    const first = await rig.open(config);
    const order = rig.order(config, "small", nextId());
    await rig.server.set({
      faults: [{ call: "ec2.RunInstances", how: "drop-answer", times: 4 }],
      invisible: 3,
    });
    await expect(rig.create(first, order)).rejects.toMatchObject({ kind: "transient" });
    // Its listings do not show the machine yet, as EC2's may not.
    const machine = await rig.create(await rig.open(config), order);
    const listed = (await first.list(new AbortController().signal)).filter(
      ({ type, tag }) => type === "instance" && tag?.nodeId === order.tag.nodeId,
    );
    expect(listed.map(({ id }) => id)).toEqual([machine.externalId]);
    const tokens = (await rig.server.calls("ec2.RunInstances")).map(({ params }) => params.ClientToken);
    expect(tokens).toHaveLength(5);
    expect(new Set(tokens).size).toBe(1);
  });

  test("9: a type that EC2 does not have is the label's fault alone", async () => {
    const config = compile(rig.site, { odd: { "instance-type": "t3.nope" }, small: {} });
    const provider = await rig.open(config);
    const { signal } = new AbortController();
    const labels = config.pools[0]!.labels;
    await expect(provider.need(labels.get("odd")!, signal)).rejects.toMatchObject({ kind: "configuration" });
    await expect(provider.need(labels.get("small")!, signal)).resolves.toMatchObject({ "L-1216C47A": 2 });
  });

  test.each([
    ["InsufficientInstanceCapacity", "capacity"],
    ["VolumeLimitExceeded", "quota"],
    ["VcpuLimitExceeded", "quota"],
    ["Unsupported", "unsupported"],
    ["InsufficientFreeAddressesInSubnet", "capacity"],
    ["RequestLimitExceeded", "transient"],
    ["InvalidGroup.NotFound", "configuration"],
  ])("17: %s is %s", async (code, kind) => {
    await rig.server.set({ faults: [{ call: "ec2.RunInstances", code, times: 4 }] });
    await expect(launch({})).rejects.toMatchObject({ kind });
  });

  test("without capacity in a zone the launch says so, and the pool offers the zones of its subnets", async () => {
    const subnets = Object.entries(rig.site.subnets);
    const config = compile(
      rig.site,
      { small: {} },
      {
        pool: { "subnet-id": undefined, "subnet-ids": subnets.map(([, id]) => id) },
      },
    );
    const provider = await rig.open(config);
    const zones = await provider.offers!.zones!.list(config.pools[0]!, new AbortController().signal);
    expect(zones).toEqual(subnets.map(([zone]) => zone).sort());
    const [full, free] = zones;
    await rig.server.set({ capacity: [{ zone: full!, most: 0 }] });
    const order = rig.order(config, "small", nextId());
    await expect(rig.create(provider, { ...order, az: full! })).rejects.toMatchObject({ kind: "capacity" });
    const machine = await rig.create(provider, { ...rig.order(config, "small", nextId()), az: free! });
    expect(machine.az).toBe(free);
  });

  test("a suspended machine is stopped, and starts at another public address, if there is room then", async () => {
    await rig.server.set({ stoppingMs: 20, pendingMs: 20 });
    const { provider, order, machine } = await launch({});
    await rig.suspend(provider, order);
    await rig.server.set({ capacity: [{ most: 0 }] });
    await expect(rig.wake(provider, order)).rejects.toMatchObject({ kind: "capacity" });
    await rig.server.set({ capacity: [] });
    const woken = await rig.wake(provider, order);
    const { publicIpv4, interfaceIp, ...same } = machine;
    expect(woken).toMatchObject(same);
    expect(woken.publicIpv4).not.toBe(publicIpv4);
    expect(woken.interfaceIp).toBe(woken.publicIpv4);
    await rig.remove(provider, order);
  });

  test("a spot machine is not suspended, as EC2 refuses, and it runs on", async () => {
    const { provider, order, machine } = await launch({ "use-spot": true });
    await expect(rig.suspend(provider, order)).rejects.toMatchObject({ kind: "unsupported" });
    expect(await rig.wake(provider, order)).toEqual(machine);
    await rig.remove(provider, order);
  });

  test("stops and starts whose answers are lost were heard", async () => {
    const { provider, order } = await launch({});
    const lost = { how: "drop-answer", times: 4 } as const;
    await rig.server.set({
      faults: [
        { call: "ec2.StopInstances", ...lost },
        { call: "ec2.StartInstances", ...lost },
      ],
    });
    await rig.suspend(provider, order);
    await rig.wake(provider, order);
    await rig.remove(provider, order);
  });
});

/** Tags by resource type. */
function tagsOf(params: Readonly<Record<string, string>>): Record<string, Record<string, string>> {
  const tags: Record<string, Record<string, string>> = {};
  for (let spec = 1; params[`TagSpecification.${spec}.ResourceType`] !== undefined; spec++) {
    const of: Record<string, string> = {};
    for (let tag = 1; params[`TagSpecification.${spec}.Tag.${tag}.Key`] !== undefined; tag++)
      of[params[`TagSpecification.${spec}.Tag.${tag}.Key`]!] =
        params[`TagSpecification.${spec}.Tag.${tag}.Value`]!;
    tags[params[`TagSpecification.${spec}.ResourceType`]!] = of;
  }
  return tags;
}
