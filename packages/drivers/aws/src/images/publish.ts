import { CALL_MS, DriverError, polled, present, type Steps } from "@nodeyard/driver";
import { type Aws, codeOf } from "../client/index.ts";
import { volumeOptions } from "../machines/bodies.ts";
import { tagSpecifications } from "../tags.ts";
import { listImages, type Upload } from "./parts.ts";
import { uploadMetadata, uploadToken } from "./tags.ts";

/** Pause between two looks at an AMI that is being made, milliseconds. */
const POLL_MS = 5_000;

/**
 * Registers an AMI whose root disk is the snapshot, and returns its id. A continued upload finds its AMI by the tag before it comes here.
 */
export async function registered(upload: Upload, SnapshotId: string): Promise<string> {
  const { order, aws, own, signal } = upload;
  const request = {
    ...({ RootDeviceName: "/dev/sda1", VirtualizationType: "hvm", EnaSupport: own.enaSupport } as const),
    Architecture: own.architecture as "x86_64",
    ...present({ ImdsSupport: own.imdsSupport }),
    BlockDeviceMappings: [
      {
        DeviceName: "/dev/sda1",
        Ebs: {
          // Without a size of its own it has the snapshot's.
          ...{ DeleteOnTermination: true, SnapshotId, ...volumeOptions(own) },
        },
      },
    ],
    TagSpecifications: tagSpecifications(["image"], uploadMetadata(order)),
  };
  const register = async (Name: string) =>
    (await aws.call("ec2.registerImage", { ...request, Name }, signal)).ImageId!;
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
export async function* published(upload: Upload, image: string): Steps<void> {
  const { order, aws, own, signal, left } = upload;
  yield { step: "wait", deadlineMs: left(), save: { externalId: image } };
  await available(upload, aws, image);
  const copies: { readonly at: Aws; readonly id: string }[] = [];
  // All copies are begun before one is waited for, as each takes minutes.
  for (const to of own.copyTo) {
    yield { step: "copy", deadlineMs: left() };
    const at = aws.in(to);
    const request = {
      Name: order.name,
      SourceImageId: image,
      SourceRegion: await aws.region(signal),
      // With the source AMI in the token: an upload that was registered anew gets new copies.
      ClientToken: uploadToken(order.tag, "copy", to, image),
      TagSpecifications: tagSpecifications(["image", "snapshot"], uploadMetadata(order)),
    };
    copies.push({ at, id: (await at.call("ec2.copyImage", request, signal)).ImageId! });
  }
  for (const { at, id } of copies) {
    yield { step: "wait", deadlineMs: left() };
    await available(upload, at, id);
  }
  yield { step: "publish", deadlineMs: CALL_MS };
  for (const { at, id } of [{ at: aws, id: image }, ...copies]) await described(upload, at, id);
}

/** Sets permissions and deprecation date. Both calls may be repeated. */
async function described({ own, clock, signal }: Upload, aws: Aws, ImageId: string): Promise<void> {
  const Add = own.shareWith.map((UserId) => ({ UserId }));
  if (Add.length > 0)
    await aws.call("ec2.modifyImageAttribute", { ImageId, LaunchPermission: { Add } }, signal);
  if (own.deprecateAfterMs === null) return;
  const DeprecateAt = new Date(clock.now() + own.deprecateAfterMs);
  await aws.call("ec2.enableImageDeprecation", { ImageId, DeprecateAt }, signal);
}

/** Waits until an AMI can be launched. Rejects when it failed. The step's deadline is the limit. */
async function available({ clock, signal, order }: Upload, aws: Aws, id: string): Promise<void> {
  await polled(clock, POLL_MS, signal, async () => {
    // EC2 is eventually consistent: it may not list an AMI that was just registered.
    const [image] = await listImages(aws, [{ Name: "image-id", Values: [id] }], signal);
    const { State = "pending", StateReason } = image ?? {};
    if (State === "available") return true;
    if (State === "pending") return undefined;
    const why = StateReason?.Message ?? "no reason given";
    throw new DriverError("transient", `image ${id} of ${order.file} is ${State}: ${why}`);
  });
}
