import { EC2 } from "@aws-sdk/client-ec2";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { requireAws } from "../../../../testing/aws/index.ts";
import { templateOf } from "../src/machines/fleets.ts";
import { AwsRig, compile, contextOf } from "./rig.ts";

// Numbers in titles are those of docs/contract/checks.md, "AWS".

const FLEET = { "instance-types": ["t3.xlarge", "t3.large"], "allocation-strategy": "prioritized" };

describe.skipIf(requireAws())("fleets, hosts, quotas and leaks", () => {
  let rig: AwsRig;
  let ec2: EC2;
  const { signal } = new AbortController();
  beforeAll(async () => {
    rig = await AwsRig.start();
    ec2 = new EC2({ region: rig.site.region, ...rig.client });
  });
  afterEach(async () => {
    await rig.closeProviders();
    await rig.server.reset();
    await rig.server.forgetCalls();
  });
  afterAll(() => rig?.stop());

  let last = 1000;
  const nextId = () => String(++last).padStart(10, "0");
  const templates = async () =>
    ((await ec2.describeLaunchTemplates({})).LaunchTemplates ?? []).map(
      ({ LaunchTemplateName: name }) => name,
    );

  test("16: a fleet of one: the order of the file, the template, and what the chosen type takes", async () => {
    const config = compile(rig.site, { fleet: { fleet: FLEET }, small: {} });
    const provider = await rig.open(config);
    expect(await provider.need(config.pools[0]!.labels.get("fleet")!, signal)).toEqual({ instances: 1 });
    const order = rig.order(config, "fleet", nextId());
    const machine = await rig.create(provider, order);
    const { params } = (await rig.server.calls("ec2.CreateFleet"))[0]!;
    expect(params).toMatchObject({
      Type: "instant",
      "TargetCapacitySpecification.TotalTargetCapacity": "1",
      "TargetCapacitySpecification.DefaultTargetCapacityType": "on-demand",
      "OnDemandOptions.AllocationStrategy": "prioritized",
      "LaunchTemplateConfigs.1.Overrides.1.InstanceType": "t3.xlarge",
      "LaunchTemplateConfigs.1.Overrides.1.Priority": "0",
      "LaunchTemplateConfigs.1.Overrides.2.Priority": "1",
    });
    expect(machine.resources).toEqual({ instances: 1, cores: 2, ram: 16384, "L-1216C47A": 4 });
    await rig.remove(provider, order, machine.externalId);
  });

  test("a fleet that made nothing fails for the reason in its answer", async () => {
    const config = compile(rig.site, { fleet: { fleet: FLEET } });
    const provider = await rig.open(config);
    await rig.server.set({ capacity: [{ most: 0 }] });
    await expect(rig.create(provider, rig.order(config, "fleet", nextId()))).rejects.toMatchObject({
      kind: "capacity",
    });
  });

  test("15: templates: shared by content, kept over restarts, replaced when the content changes, others' kept", async () => {
    const volume = { "volume-type": "io2", "volume-size": 20, iops: 2000 };
    const of = (iops: number) =>
      compile(rig.site, { a: { fleet: FLEET, ...volume, iops }, b: { fleet: FLEET, ...volume, iops } });
    await ec2.createLaunchTemplate({
      LaunchTemplateName: "nodepool-launch-template-python",
      LaunchTemplateData: {},
    });
    await rig.open(of(2000));
    const before = await templates();
    const made = async () => (await rig.server.calls("ec2.CreateLaunchTemplate")).length;
    const atFirst = await made();
    await rig.open(of(2000));
    expect(await made()).toBe(atFirst);
    await rig.open(of(3000));
    const after = await templates();
    expect(after).toHaveLength(before.length);
    expect(after.filter((name) => !before.includes(name))).toHaveLength(1);
    expect(after).toContain("nodepool-launch-template-python");
    // A configuration without a fleet has no use for any of ours.
    await rig.open(compile(rig.site));
    expect(await templates()).toEqual(["nodepool-launch-template-python"]);
    // A launcher of another configuration has removed it: it is made again.
    const provider = await rig.open(of(2000));
    const [name] = (await templates()).filter((one) => one !== "nodepool-launch-template-python");
    await ec2.deleteLaunchTemplate({ LaunchTemplateName: name });
    const order = rig.order(of(2000), "a", nextId());
    await rig.create(provider, order);
    expect(await templates()).toContain(name);
  });

  test("a fleet changes the root volume of an image whose root device has another name", async () => {
    const { ImageId } = await ec2.registerImage({ Name: "with-xvda", RootDeviceName: "/dev/xvda" });
    const volume = { "volume-type": "gp3", "volume-size": 21 };
    const images = [
      { name: "ubuntu", "image-id": rig.site.images[0], username: "ubuntu" },
      { name: "amazon", "image-id": ImageId, username: "ec2-user" },
    ];
    const config = compile(
      rig.site,
      { a: { fleet: FLEET, ...volume }, b: { fleet: FLEET, ...volume, "cloud-image": "amazon" } },
      { provider: { "cloud-images": images } },
    );
    const provider = await rig.open(config);
    const before = await templates();
    const machine = await rig.create(provider, rig.order(config, "b", nextId()));
    // It was made when the provider opened, beside that of the other image.
    expect(await templates()).toEqual(before);
    const { instance } = machine.externalId as { instance: string };
    const { Reservations } = await ec2.describeInstances({ InstanceIds: [instance] });
    const [device, ...others] = Reservations![0]!.Instances![0]!.BlockDeviceMappings!;
    expect([device!.DeviceName, others]).toEqual(["/dev/xvda", []]);
    const { Volumes } = await ec2.describeVolumes({ VolumeIds: [device!.Ebs!.VolumeId!] });
    expect(Volumes![0]).toMatchObject({ Size: 21, VolumeType: "gp3" });
  });

  test("15: a template is called as Nodepool calls it", () => {
    const config = compile(
      rig.site,
      {
        a: {
          fleet: FLEET,
          "key-name": "zuul",
          "volume-type": "io2",
          "volume-size": 20,
          iops: 2000,
          userdata: "some-command",
        },
      },
      { pool: { "security-group-id": "sg-1" } },
    );
    const pool = config.pools[0]!;
    expect(templateOf(pool.labels.get("a")!, pool.own, "ec2-us-west-2").name).toBe(
      "nodepool-launch-template-96b90f4abaeb2c1384e187e5c9f42267a499b7b226e6d4c0972c58906dd3d143",
    );
  });

  const hostPool = { pool: { "availability-zone": "us-west-2a" } };

  test("14: a dedicated host: allocated before, saved before, released after its instance", async () => {
    const config = compile(rig.site, { host: { "dedicated-host": true } }, hostPool);
    const provider = await rig.open(config);
    const order = rig.order(config, "host", nextId());
    const saved: unknown[] = [];
    const machine = await rig.create(provider, order, saved);
    const { host, instance } = machine.externalId as { host: string; instance: string };
    expect(saved).toEqual([{ host }, { host, instance }]);
    const { params } = (await rig.server.calls("ec2.RunInstances"))[0]!;
    expect(params).toMatchObject({
      "Placement.Tenancy": "host",
      "Placement.HostId": host,
      "Placement.Affinity": "host",
    });
    await rig.remove(provider, order, machine.externalId);
    const calls = (await rig.server.calls()).map(({ call }) => call);
    expect(calls.indexOf("ec2.TerminateInstances")).toBeLessThan(calls.indexOf("ec2.ReleaseHosts"));
    expect((await ec2.describeHosts({ HostIds: [host] })).Hosts?.[0]?.State).toBe("released");
  });

  test("14: a host whose machine was never made is released, with its id and without", async () => {
    const config = compile(rig.site, { host: { "dedicated-host": true } }, hostPool);
    const provider = await rig.open(config);
    const order = rig.order(config, "host", nextId());
    await rig.server.set({
      faults: [{ call: "ec2.RunInstances", code: "InsufficientInstanceCapacity", times: 1 }],
    });
    const saved: { host: string }[] = [];
    await expect(rig.create(provider, order, saved)).rejects.toMatchObject({ kind: "capacity" });
    await rig.remove(provider, order, null);
    expect((await ec2.describeHosts({ HostIds: [saved[0]!.host] })).Hosts?.[0]?.State).toBe("released");
  });

  test("14: a host that a Python launcher left is released with its node, by the id in the record", async () => {
    const config = compile(rig.site, { host: { "dedicated-host": true } }, hostPool);
    const provider = await rig.open(config);
    const order = rig.order(config, "host", nextId());
    const tags = {
      nodepool_provider_name: config.name,
      nodepool_pool_name: "main",
      nodepool_node_id: order.tag.nodeId,
    };
    const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    const one = { AvailabilityZone: "us-west-2a", InstanceType: "m5.large", Quantity: 1 };
    const { HostIds } = await ec2.allocateHosts({
      ...one,
      TagSpecifications: [{ ResourceType: "dedicated-host", Tags }],
    });
    const host = HostIds![0]!;
    // Another node's record does not release it.
    await rig.remove(provider, rig.order(config, "host", nextId()), { host });
    expect((await ec2.describeHosts({ HostIds: [host] })).Hosts?.[0]?.State).toBe("available");
    await rig.remove(provider, order, { host });
    expect((await ec2.describeHosts({ HostIds: [host] })).Hosts?.[0]?.State).toBe("released");
  });

  test("an instance that a Python launcher left is terminated with its node, by the id in the record", async () => {
    const config = compile(rig.site);
    const provider = await rig.open(config);
    const order = rig.order(config, "small", nextId());
    const tags = { nodepool_provider_name: config.name, nodepool_node_id: order.tag.nodeId };
    const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
    const { Instances } = await ec2.runInstances({
      ...{ ImageId: rig.site.images[0]!, InstanceType: "t3.medium", MinCount: 1, MaxCount: 1 },
      TagSpecifications: [{ ResourceType: "instance", Tags }],
    });
    const id = Instances![0]!.InstanceId!;
    await rig.remove(provider, order, id);
    const { Reservations } = await ec2.describeInstances({ InstanceIds: [id] });
    expect(Reservations![0]!.Instances![0]!.State!.Name).toMatch(/^(shutting-down|terminated)$/);
  });

  test("10 to 13: quotas are those that the labels count against; storage in GiB", async () => {
    await rig.server.set({
      quotas: { ec2: { "L-1216C47A": 64, "L-34B43A08": 200, "L-43DA4232": 448 }, ebs: { "L-D18FCD1D": 1 } },
    });
    const config = compile(rig.site, {
      small: {},
      spot: { "use-spot": true, "instance-type": "m6i.32xlarge" },
      big: { "volume-type": "gp2", "volume-size": 1000 },
      odd: { "instance-type": "is4gen.medium" },
    });
    const provider = await rig.open(config);
    expect(await provider.quota(signal)).toEqual({ "L-1216C47A": 64, "L-34B43A08": 200, "L-D18FCD1D": 1024 });
    const need = (label: string) => provider.need(config.pools[0]!.labels.get(label)!, signal);
    expect(await need("spot")).toMatchObject({ "L-34B43A08": 128 });
    expect(await need("big")).toMatchObject({ "L-1216C47A": 2, "L-D18FCD1D": 1000 });
    expect(Object.keys(await need("odd")).filter((name) => name.startsWith("L-"))).toEqual([]);
  });

  test("18: sixty deletions at once are a handful of calls", async () => {
    const config = compile(rig.site, { small: {} }, { pool: { "security-group-id": undefined } });
    const provider = await rig.open(config);
    const orders = Array.from({ length: 60 }, () => rig.order(config, "small", nextId()));
    await Promise.all(orders.map((order) => rig.create(provider, order)));
    await rig.server.forgetCalls();
    await Promise.all(orders.map((order) => rig.remove(provider, order)));
    const calls = await rig.server.calls("ec2.TerminateInstances");
    const ids = calls.map(
      ({ params }) => Object.keys(params).filter((key) => key.startsWith("InstanceId.")).length,
    );
    expect(ids.reduce((sum, count) => sum + count)).toBe(60);
    expect(Math.max(...ids)).toBeLessThanOrEqual(50);
    expect(ids.length).toBeLessThanOrEqual(4);
    expect((await rig.server.counts())["ec2.DescribeInstances"]).toBeLessThanOrEqual(10);
  });

  test("19: with a rate of 2, calls that change something are half a second apart, and readers are not", async () => {
    const config = compile(rig.site, { small: {} }, { provider: { rate: 2 } });
    const provider = await rig.open(config);
    await Promise.all([1, 2, 3, 4].map(() => rig.create(provider, rig.order(config, "small", nextId()))));
    const at = (await rig.server.calls("ec2.RunInstances")).map((call) => call.at);
    const apart = at.slice(1).map((time, index) => time - at[index]!);
    // As they arrive: what one was late for does not make the next one early, by more than a busy machine's jitter.
    expect(at.at(-1)! - at[0]!).toBeGreaterThan(1_200);
    expect(apart).toHaveLength(3);
  });

  test("24: instances, volumes and hosts without a node are ours to delete; another installation's and Python's are not", async () => {
    const config = compile(rig.site);
    const provider = await rig.open(config);
    const theirs = await rig.open(config, contextOf("c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02"));
    const order = rig.order(config, "small", nextId());
    await rig.create(theirs, {
      ...order,
      tag: { ...order.tag, installation: "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02" },
    });
    const zone = "us-west-2a";
    const volume = async (tags: Record<string, string>) => {
      const Tags = Object.entries(tags).map(([Key, Value]) => ({ Key, Value }));
      const made = await ec2.createVolume({
        AvailabilityZone: zone,
        Size: 1,
        TagSpecifications: [{ ResourceType: "volume", Tags }],
      });
      return made.VolumeId!;
    };
    const old = {
      nodepool_node_id: "0000009999",
      nodepool_pool_name: "main",
      nodepool_provider_name: config.name,
    };
    const ours = await volume({ ...old, nodeyard_installation: order.tag.installation });
    const python = await volume(old);
    const listed = await provider.list(signal);
    const found = (id: string) => listed.find((one) => one.id === id)!;
    expect(found(ours).tag?.nodeId).toBe("0000009999");
    expect(found(python).tag).toBeNull();
    await provider.removeResource(found(ours), signal);
    await provider.removeResource(found(ours), signal);
    const left = (await provider.list(signal)).map(({ id }) => id);
    expect(left).not.toContain(ours);
    expect(left).toContain(python);
  });
});
