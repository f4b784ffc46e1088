import { DriverError, type Step, sleep } from "@nodeyard/driver";
import { type Aws, codeOf } from "../client/index.ts";
import { tagListOf } from "../tags.ts";
import { listImages } from "./found.ts";
import { CALL_MS, type Upload } from "./parts.ts";
import { uploadMetadata, uploadToken } from "./tags.ts";

/** Pause between two looks at an AMI that is being made, milliseconds. */
const POLL_MS = 5_000;

/**
 * Registers an AMI whose root disk is the snapshot, and returns its id. A continued upload finds its AMI by the tag before it comes here.
 */
export async function registered(upload: Upload, snapshot: string): Promise<string> {
  const { order, aws, own, signal } = upload;
  const request = {
    Architecture: own.architecture as "x86_64",
    RootDeviceName: "/dev/sda1",
    VirtualizationType: "hvm",
    EnaSupport: own.enaSupport,
    ...(own.imdsSupport === null ? {} : { ImdsSupport: own.imdsSupport as "v2.0" }),
    BlockDeviceMappings: [
      {
        DeviceName: "/dev/sda1",
        Ebs: {
          DeleteOnTermination: true,
          SnapshotId: snapshot,
          VolumeSize: own.volumeSize ?? (await sizeOf(upload, snapshot)),
          VolumeType: own.volumeType as "gp3",
          ...(own.iops === null ? {} : { Iops: own.iops }),
          ...(own.throughput === null ? {} : { Throughput: own.throughput }),
        },
      },
    ],
    TagSpecifications: [{ ResourceType: "image" as const, Tags: tagListOf(uploadMetadata(order)) }],
  };
  const register = async (Name: string) =>
    (await aws.ec2((ec2, to) => ec2.registerImage({ ...request, Name }, to), signal)).ImageId!;
  try {
    return await register(order.name);
  } catch (error) {
    // AMI names are unique per account and region. Another provider or installation has used the same second in its name.
    if (codeOf(error) !== "InvalidAMIName.Duplicate") throw error;
    return register(`${order.name}-${uploadToken(order.tag).slice(0, 8)}`);
  }
}

/**
 * Waits until the AMI is available, then applies the other settings of its diskimage: copies to regions, launch permissions, deprecation
 * date (after which AWS no longer lists it for other accounts). A repetition has the same result.
 */
export async function* published(upload: Upload, image: string): AsyncGenerator<Step, void, void> {
  const { order, aws, own, signal, left } = upload;
  yield { step: "wait", deadlineMs: left(), save: { externalId: image } };
  await available(upload, aws, image);
  const copies: { readonly at: Aws; readonly id: string }[] = [{ at: aws, id: image }];
  // All copies are begun before one is waited for, as each takes minutes.
  for (const to of own.copyTo) {
    yield { step: "copy", deadlineMs: left() };
    const at = aws.in(to);
    const Tags = tagListOf(uploadMetadata(order));
    const request = {
      Name: order.name,
      SourceImageId: image,
      SourceRegion: await aws.region(signal),
      // With the source AMI in the token: an upload that was registered anew gets new copies.
      ClientToken: uploadToken(order.tag, "copy", to, image),
      TagSpecifications: (["image", "snapshot"] as const).map((ResourceType) => ({ ResourceType, Tags })),
    };
    const { ImageId } = await at.ec2((ec2, given) => ec2.copyImage(request, given), signal);
    copies.push({ at, id: ImageId! });
  }
  for (const { at, id } of copies.slice(1)) {
    yield { step: "wait", deadlineMs: left() };
    await available(upload, at, id);
  }
  yield { step: "publish", deadlineMs: CALL_MS };
  for (const { at, id } of copies) await described(upload, at, id);
}

/** Sets permissions and deprecation date. Both calls may be repeated. */
async function described({ own, clock, signal }: Upload, aws: Aws, ImageId: string): Promise<void> {
  if (own.shareWith.length > 0) {
    const Add = own.shareWith.map((UserId) => ({ UserId }));
    await aws.ec2((ec2, to) => ec2.modifyImageAttribute({ ImageId, LaunchPermission: { Add } }, to), signal);
  }
  if (own.deprecateAfterMs === null) return;
  const DeprecateAt = new Date(clock.now() + own.deprecateAfterMs);
  await aws.ec2((ec2, to) => ec2.enableImageDeprecation({ ImageId, DeprecateAt }, to), signal);
}

/** Waits until an AMI can be launched. Rejects when it failed. The step's deadline is the limit. */
async function available({ clock, signal, order }: Upload, aws: Aws, id: string): Promise<void> {
  for (;;) {
    // A filter is used because EC2 is eventually consistent: a request by id may fail for an AMI that was just registered.
    const [image] = await listImages(aws, { Filters: [{ Name: "image-id", Values: [id] }] }, signal);
    if (image?.State === "available") return;
    if (image !== undefined && image.State !== "pending")
      throw new DriverError(
        "transient",
        `image ${id} of ${order.file} is ${image.State}: ${image.StateReason?.Message ?? "no reason given"}`,
      );
    await sleep(clock, POLL_MS, signal);
  }
}

/** Size of a snapshot's volume, GiB. */
async function sizeOf({ aws, signal }: Upload, snapshot: string): Promise<number> {
  const { Snapshots } = await aws.ec2(
    (ec2, to) => ec2.describeSnapshots({ SnapshotIds: [snapshot] }, to),
    signal,
  );
  const size = Snapshots?.[0]?.VolumeSize;
  if (size === undefined) throw new DriverError("transient", `snapshot ${snapshot} has no size yet`);
  return size;
}
