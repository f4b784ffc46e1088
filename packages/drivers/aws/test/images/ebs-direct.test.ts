import { EC2 } from "@aws-sdk/client-ec2";
import type { ExternalId } from "@nodeyard/driver";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { requireAws } from "../../../../../testing/aws/index.ts";
import { BLOCK, checksumOf, dataOf, ImageRig, listed, orderOf, remove, tagOf, upload } from "./rig.ts";

// Numbers in titles are those of docs/contract/checks.md, "AWS".

const EBS_DIRECT = { "import-method": "ebs-direct" };

describe.skipIf(requireAws())("uploads by EBS direct", () => {
  let rig: ImageRig;
  beforeAll(async () => {
    rig = await ImageRig.start();
  });
  afterEach(() => rig?.server.reset());
  afterAll(() => rig?.stop());

  const ec2 = () =>
    new EC2({
      region: rig.site.region,
      endpoint: rig.server.url,
      credentials: { accessKeyId: "testing", secretAccessKey: "testing" },
    });

  test("21: only blocks with data are sent, each with its checksum; S3 is not asked; the image is as configured", async () => {
    const provider = await rig.openWith({
      ...EBS_DIRECT,
      architecture: "arm64",
      "volume-size": 20,
      iops: 4000,
      throughput: 200,
      "imds-support": "v2.0",
    });
    // The last block is a short one.
    const size = 40 * BLOCK + 1000;
    const file = rig.file("small", size, [0, 7, 40]);
    await rig.server.forgetCalls();
    const saved: ExternalId[] = [];
    let sent = 0;
    const order = {
      ...orderOf(file, size, tagOf("0000000001")),
      progress: (bytes: number) => {
        sent = bytes;
      },
    };
    const id = await upload(provider, order, { save: (one) => void saved.push(one) });
    expect([id, sent]).toEqual([saved.at(-1), size]);
    const snapshot = saved[0] as string;
    const { blocks, status, puts } = await rig.server.blocks(snapshot);
    const last = Buffer.alloc(BLOCK);
    dataOf(40).copy(last, 0, 0, 1000);
    expect({ blocks, status, puts }).toEqual({
      blocks: { 0: checksumOf(dataOf(0)), 7: checksumOf(dataOf(7)), 40: checksumOf(last) },
      status: "completed",
      puts: 3,
    });
    expect(Object.keys(await rig.server.counts()).filter((call) => call.startsWith("s3."))).toEqual([]);
    const { Images } = await ec2().describeImages({ ImageIds: [id as string] });
    const tags = Object.fromEntries(Images![0]!.Tags!.map(({ Key, Value }) => [Key, Value]));
    expect(tags).toMatchObject({ os: "linux", nodepool_upload_id: "0000000001", nodepool_build_id: "b1" });
    expect(Images![0]).toMatchObject({
      Name: "debian-0000000001",
      Architecture: "arm64",
      ImdsSupport: "v2.0",
      EnaSupport: true,
      VirtualizationType: "hvm",
      RootDeviceName: "/dev/sda1",
      BlockDeviceMappings: [
        {
          DeviceName: "/dev/sda1",
          Ebs: { SnapshotId: snapshot, VolumeSize: 20, VolumeType: "gp3", Iops: 4000, Throughput: 200 },
        },
      ],
    });
  });

  test("21: a block that arrived otherwise fails the upload and deletes the snapshot", async () => {
    const provider = await rig.openWith(EBS_DIRECT);
    await rig.server.set({ corruptBlocks: [2] });
    const file = rig.file("corrupt", 4 * BLOCK, [1, 2]);
    const tag = tagOf("0000000002");
    await expect(upload(provider, orderOf(file, 4 * BLOCK, tag))).rejects.toMatchObject({
      kind: "transient",
      message: expect.stringContaining("block 2"),
    });
    expect(await listed(provider)).not.toContainEqual(expect.objectContaining({ upload: tag.uploadId }));
  });

  test("completion that takes its time is waited for, and throttling is no failure", async () => {
    const provider = await rig.openWith(EBS_DIRECT);
    await rig.server.set({
      completionCalls: 2,
      faults: [{ call: "ebs.PutSnapshotBlock", code: "RequestThrottledException", status: 400, times: 2 }],
    });
    const file = rig.file("slow", 4 * BLOCK, [0, 1, 2, 3]);
    const id = await upload(provider, orderOf(file, 4 * BLOCK, tagOf("0000000003")));
    expect(id).toMatch(/^ami-/);
  });

  test("a lost answer makes neither a second snapshot nor a second image", async () => {
    const provider = await rig.openWith(EBS_DIRECT);
    const file = rig.file("lost", 2 * BLOCK, [0]);
    const tag = tagOf("0000000004");
    const drop = (call: string) => rig.server.set({ faults: [{ call, how: "drop-answer" }] });
    await drop("ebs.StartSnapshot");
    await upload(provider, orderOf(file, 2 * BLOCK, tag));
    const { Snapshots } = await ec2().describeSnapshots({
      OwnerIds: ["self"],
      Filters: [{ Name: "tag:nodepool_upload_id", Values: [tag.uploadId] }],
    });
    expect(Snapshots).toHaveLength(1);
  });

  test("an upload that was begun by a version with records of another form goes on in its snapshot", async () => {
    const provider = await rig.openWith(EBS_DIRECT);
    const order = orderOf(rig.file("older", 3 * BLOCK, [0, 1, 2]), 3 * BLOCK, tagOf("0000000008"));
    await rig.server.set({
      faults: [{ call: "ebs.CompleteSnapshot", code: "AccessDeniedException", status: 403 }],
    });
    const saved: ExternalId[] = [];
    const save = (one: ExternalId) => void saved.push(one);
    await expect(upload(provider, order, { save })).rejects.toMatchObject({ kind: "access" });
    await rig.server.set({ faults: [] });
    const [snapshot] = saved as string[];
    const id = await upload(provider, order, { externalId: { snapshot, blocks: 2 } });
    const { Images } = await ec2().describeImages({ ImageIds: [id as string] });
    expect(Images![0]!.BlockDeviceMappings![0]!.Ebs!.SnapshotId).toBe(snapshot);
    const { Snapshots } = await ec2().describeSnapshots({
      OwnerIds: ["self"],
      Filters: [{ Name: "tag:nodepool_upload_id", Values: [order.tag.uploadId] }],
    });
    expect(Snapshots).toHaveLength(1);
  });

  test("a file that changed, one of another format and a format that ebs-direct cannot take are refused", async () => {
    const provider = await rig.openWith(EBS_DIRECT);
    const file = rig.file("short", 2 * BLOCK, [0]);
    await expect(upload(provider, orderOf(file, 3 * BLOCK, tagOf("0000000005")))).rejects.toMatchObject({
      kind: "fatal",
    });
    const other = orderOf(file, 2 * BLOCK, tagOf("0000000006"), { format: "vhd" });
    await expect(upload(provider, other)).rejects.toMatchObject({ kind: "configuration" });
    await remove(provider, tagOf("0000000005"));
  });

  test("23: removal deregisters the image, then deletes its snapshot; twice ends normally", async () => {
    const provider = await rig.openWith(EBS_DIRECT);
    const file = rig.file("gone", 2 * BLOCK, [1]);
    const tag = tagOf("0000000007");
    const id = await upload(provider, orderOf(file, 2 * BLOCK, tag));
    expect(await listed(provider)).toContainEqual({ type: "image", id, upload: tag.uploadId });
    await rig.server.forgetCalls();
    await remove(provider, tag);
    await remove(provider, tag);
    const deletions = (await rig.server.calls()).filter(({ call }) => /Deregister|DeleteSnapshot/.test(call));
    expect(deletions.map(({ call }) => call)).toEqual(["ec2.DeregisterImage", "ec2.DeleteSnapshot"]);
    expect(await listed(provider)).not.toContainEqual(expect.objectContaining({ upload: tag.uploadId }));
  });
});
