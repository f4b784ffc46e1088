import { EC2, type Tag } from "@aws-sdk/client-ec2";
import { S3 } from "@aws-sdk/client-s3";
import { imageMetadata, uploadKey } from "@nodeyard/driver";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { requireAws } from "../../../../../testing/aws/index.ts";
import { tagListOf } from "../../src/tags.ts";
import { INSTALLATION } from "../rig.ts";
import { BLOCK, ImageRig, listed, orderOf, PROVIDER, remove, tagOf, upload } from "./rig.ts";

// Numbers in titles are those of docs/contract/checks.md, "AWS".

describe.skipIf(requireAws())("uploads by S3 and an import", () => {
  let rig: ImageRig;
  let size = 0;
  let file = "";
  beforeAll(async () => {
    rig = await ImageRig.start();
    // Two parts, the second a short one.
    size = 40 * BLOCK + 17;
    file = rig.file("image", size, [0, 39]);
  });
  afterEach(() => rig?.server.reset());
  afterAll(() => rig?.stop());

  const options = (region = rig.site.region) => ({
    region,
    endpoint: rig.server.url,
    credentials: { accessKeyId: "testing", secretAccessKey: "testing" },
  });
  const ec2 = (region?: string) => new EC2(options(region));
  const s3 = () => new S3(options());
  const keys = async () =>
    (await s3().listObjectsV2({ Bucket: rig.site.bucket })).Contents?.map(({ Key }) => Key) ?? [];
  const imageOf = async (id: unknown, region?: string) =>
    (await ec2(region).describeImages({ ImageIds: [id as string] })).Images![0]!;
  const tagsOf = (tags: readonly Tag[] | undefined) =>
    Object.fromEntries((tags ?? []).map(({ Key, Value }) => [Key, Value]));

  test("20: a snapshot import waits for its turn, leaves no object, and becomes an image with the tags of the upload", async () => {
    const provider = await rig.openWith({ iops: 5000, throughput: 300, "volume-type": "gp3" }, undefined, {
      "image-import-timeout": 60,
    });
    const tag = tagOf("0000000001");
    await rig.server.set({
      faults: [{ call: "ec2.ImportSnapshot", code: "ResourceCountLimitExceeded", times: 1 }],
    });
    await rig.server.forgetCalls();
    const id = await upload(provider, orderOf(file, size, tag));
    const counts = await rig.server.counts();
    expect(counts).toMatchObject({ "ec2.ImportSnapshot": 2, "s3.UploadPart": 2, "ec2.RegisterImage": 1 });
    expect(await keys()).toEqual([]);
    const image = await imageOf(id);
    expect(image).toMatchObject({
      Name: "debian-0000000001",
      RootDeviceName: "/dev/sda1",
      BlockDeviceMappings: [
        { DeviceName: "/dev/sda1", Ebs: { VolumeType: "gp3", Iops: 5000, Throughput: 300, VolumeSize: 1 } },
      ],
    });
    expect(image.ImdsSupport).toBeUndefined();
    expect(tagsOf(image.Tags)).toEqual({ os: "linux", ...imageMetadata(tag) });
    const snapshot = image.BlockDeviceMappings![0]!.Ebs!.SnapshotId!;
    const { Snapshots } = await ec2().describeSnapshots({ SnapshotIds: [snapshot] });
    expect(tagsOf(Snapshots![0]!.Tags)).toMatchObject(imageMetadata(tag));
  });

  test("without image-import-timeout the limit of imports fails the upload, and removal leaves nothing", async () => {
    const provider = await rig.openWith({});
    const tag = tagOf("0000000002");
    await rig.server.set({ importMost: 0 });
    await expect(upload(provider, orderOf(file, size, tag))).rejects.toMatchObject({ kind: "quota" });
    expect(await listed(provider)).toContainEqual(
      expect.objectContaining({ type: "object", upload: tag.uploadId }),
    );
    await remove(provider, tag);
    expect(await keys()).toEqual([]);
    expect(await listed(provider)).not.toContainEqual(expect.objectContaining({ upload: tag.uploadId }));
  });

  test("an image import is tagged as a whole, its snapshots too", async () => {
    const provider = await rig.openWith({ "import-method": "image" });
    const tag = tagOf("0000000003");
    const id = await upload(provider, orderOf(file, size, tag));
    const image = await imageOf(id);
    expect(tagsOf(image.Tags)).toMatchObject(imageMetadata(tag));
    const { Snapshots } = await ec2().describeSnapshots({
      SnapshotIds: [image.BlockDeviceMappings![0]!.Ebs!.SnapshotId!],
    });
    expect(tagsOf(Snapshots![0]!.Tags)).toMatchObject(imageMetadata(tag));
    await remove(provider, tag);
    expect(await listed(provider)).not.toContainEqual(expect.objectContaining({ upload: tag.uploadId }));
  });

  test("a lost answer to an import starts no second one", async () => {
    const provider = await rig.openWith({});
    await rig.server.set({ faults: [{ call: "ec2.ImportSnapshot", how: "drop-answer" }] });
    await rig.server.forgetCalls();
    const tag = tagOf("0000000004");
    await upload(provider, orderOf(file, size, tag));
    const { ImportSnapshotTasks } = await ec2().describeImportSnapshotTasks({});
    const own = ImportSnapshotTasks!.filter(({ Tags }) => tagsOf(Tags).nodepool_upload_id === tag.uploadId);
    expect(own).toHaveLength(1);
  });

  test("an upload that goes on from its image, after a crash, leaves no object", async () => {
    const provider = await rig.openWith({});
    const tag = tagOf("0000000014");
    const id = await upload(provider, orderOf(file, size, tag));
    await s3().putObject({ Bucket: rig.site.bucket, Key: uploadKey(tag), Body: "left" });
    expect(await upload(provider, orderOf(file, size, tag))).toBe(id);
    expect(await keys()).toEqual([]);
  });

  test("copies are in the other regions with their tags, shared and with a date; removal finds all of them", async () => {
    const provider = await rig.openWith({
      "import-method": "ebs-direct",
      "copy-to": ["us-east-2"],
      "share-with": ["111122223333"],
      "deprecate-after": 864_000,
    });
    const tag = tagOf("0000000005");
    await rig.server.set({ copyMs: 200 });
    const id = await upload(provider, orderOf(file, size, tag));
    const { Images } = await ec2("us-east-2").describeImages({ Owners: ["self"] });
    expect(Images).toHaveLength(1);
    const [copy] = Images!;
    expect(tagsOf(copy!.Tags)).toMatchObject(imageMetadata(tag));
    for (const [image, region] of [
      [await imageOf(id), undefined],
      [copy!, "us-east-2"],
    ] as const) {
      expect(new Date(image.DeprecationTime!).getTime()).toBeGreaterThan(Date.now() + 863_000_000);
      const shared = await ec2(region).describeImageAttribute({
        ImageId: image.ImageId!,
        Attribute: "launchPermission",
      });
      expect(shared.LaunchPermissions).toEqual([{ UserId: "111122223333" }]);
    }
    const own = (await listed(provider)).filter((one) => one.upload === tag.uploadId);
    expect(own.map((one) => one.id)).toEqual([id, `us-east-2/${copy!.ImageId}`]);
    await remove(provider, tag);
    expect((await ec2("us-east-2").describeImages({ Owners: ["self"] })).Images).toEqual([]);
    expect((await ec2("us-east-2").describeSnapshots({ OwnerIds: ["self"] })).Snapshots).toEqual([]);
  });

  test("copies of a provider without region-name come from the region that the SDK finds", async () => {
    const former = process.env.AWS_REGION;
    process.env.AWS_REGION = rig.site.region;
    onTestFinished(() => {
      if (former === undefined) delete process.env.AWS_REGION;
      else process.env.AWS_REGION = former;
    });
    const settings = { "import-method": "ebs-direct", "copy-to": ["us-east-2"] };
    const provider = await rig.openWith(settings, INSTALLATION, { "region-name": undefined });
    const tag = tagOf("0000000009");
    const id = await upload(provider, orderOf(file, size, tag));
    const { Images } = await ec2("us-east-2").describeImages({ Owners: ["self"] });
    // EC2 refuses a copy from a region that is not named, and finds no AMI of that id in another one.
    expect(Images).toHaveLength(1);
    const own = (await listed(provider)).filter((one) => one.upload === tag.uploadId);
    expect(own.map((one) => one.id)).toContain(id);
    await remove(provider, tag);
    expect((await ec2("us-east-2").describeImages({ Owners: ["self"] })).Images).toEqual([]);
  });

  test("25: what an import made untagged gets the tags of its own task; what no task of ours made stays as it is", async () => {
    const provider = await rig.openWith({});
    const live = await upload(provider, orderOf(file, size, tagOf("0000000006")));
    await s3().putObject({ Bucket: rig.site.bucket, Key: "theirs.raw", Body: "x" });
    const begin = async (tags: object[]) => {
      const DiskContainer = { Format: "raw", UserBucket: { S3Bucket: rig.site.bucket, S3Key: "theirs.raw" } };
      const TagSpecifications = [{ ResourceType: "import-snapshot-task" as const, Tags: tags }];
      const { ImportTaskId } = await ec2().importSnapshot({
        DiskContainer,
        ...(tags.length > 0 && { TagSpecifications }),
      });
      for (let look = 0; look < 2; look++)
        await ec2().describeImportSnapshotTasks({ ImportTaskIds: [ImportTaskId!] });
    };
    await begin(tagListOf(imageMetadata(tagOf("0000000099"))));
    await begin([]);
    await begin([{ Key: "nodepool_provider_name", Value: PROVIDER }]);
    const all = await listed(provider);
    expect(all).toContainEqual({
      type: "snapshot",
      id: expect.stringMatching(/^snap-/),
      upload: "0000000099",
    });
    expect(all).toContainEqual({ type: "image", id: live, upload: "0000000006" });
    // Once tagged it no longer needs its task.
    const { Snapshots } = await ec2().describeSnapshots({
      Filters: [{ Name: "tag:nodepool_upload_id", Values: ["0000000099"] }],
    });
    expect(Snapshots).toHaveLength(1);
    for (const resource of await provider.list(new AbortController().signal))
      if (resource.imageTag?.uploadId === "0000000099")
        await provider.removeResource(resource, new AbortController().signal);
    expect((await listed(provider)).map(({ upload: number }) => number)).not.toContain("0000000099");
    expect((await ec2().describeImages({ ImageIds: [live as string] })).Images).toHaveLength(1);
  });

  test("a crash in the middle of the parts leaves nothing but what the next try and a removal end", async () => {
    const provider = await rig.openWith({});
    const tag = tagOf("0000000007");
    await rig.server.set({
      faults: [{ call: "s3.CompleteMultipartUpload", code: "AccessDenied", status: 403 }],
    });
    await expect(upload(provider, orderOf(file, size, tag))).rejects.toMatchObject({ kind: "access" });
    expect(await listed(provider)).toContainEqual(
      expect.objectContaining({ type: "object", upload: tag.uploadId }),
    );
    await remove(provider, tag);
    expect((await s3().listMultipartUploads({ Bucket: rig.site.bucket })).Uploads ?? []).toEqual([]);
  });

  test.each([
    ["the parts that are there are not sent again", [], "0000000011", 2],
    ["a policy without the right to list parts costs only time", ["s3.ListParts"], "0000000012", 4],
  ])("an upload to S3 that was interrupted goes on: %s", async (_, denied, uploadId, parts) => {
    const provider = await rig.openWith({});
    const order = orderOf(file, size, tagOf(uploadId));
    const deny = (call: string) => ({ call, code: "AccessDenied", status: 403 });
    await rig.server.set({ faults: [deny("s3.CompleteMultipartUpload")] });
    await rig.server.forgetCalls();
    await expect(upload(provider, order)).rejects.toMatchObject({ kind: "access" });
    await rig.server.set({ faults: denied.map(deny) });
    await upload(await rig.openWith({}), order);
    const counts = await rig.server.counts();
    expect(counts).toMatchObject({ "s3.UploadPart": parts, "s3.CreateMultipartUpload": 1 });
    expect(await keys()).not.toContain(uploadKey(order.tag));
  });

  test("24: an object is ours by its tags, not by its key alone", async () => {
    const provider = await rig.openWith({});
    const tag = tagOf("0000000010");
    await s3().putObject({ Bucket: rig.site.bucket, Key: uploadKey(tag), Body: "x" });
    expect(await listed(provider)).not.toContainEqual(expect.objectContaining({ upload: tag.uploadId }));
    const Tagging = new URLSearchParams(imageMetadata(tag)).toString();
    await s3().putObject({ Bucket: rig.site.bucket, Key: uploadKey(tag), Body: "x", Tagging });
    const ours = (await provider.list(new AbortController().signal)).find(({ id }) => id === uploadKey(tag));
    await provider.removeResource(ours!, new AbortController().signal);
    expect(await keys()).not.toContain(uploadKey(tag));
  });

  test("uploads of another installation stay, and are not listed as ours", async () => {
    const theirs = await rig.openWith({}, "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02");
    const provider = await rig.openWith({});
    const tag = tagOf("0000000008", { installation: "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02" });
    const id = await upload(theirs, orderOf(file, size, tag));
    await remove(provider, tagOf("0000000008"));
    expect((await ec2().describeImages({ ImageIds: [id as string] })).Images).toHaveLength(1);
  });
});
