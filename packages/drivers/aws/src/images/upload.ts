import {
  CALL_MS,
  DriverError,
  hashOf,
  type ImageTag,
  imageMetadata,
  type Metadata,
  polled,
  present,
  type Steps,
  type UploadOrder,
  unlessRefused,
} from "@nodeyard/driver";
import type { Aws } from "../client/aws.ts";
import type { AwsDiskimage } from "../config-table.ts";
import { volumeOptions } from "../machines/launch.ts";
import { tagSpecifications } from "../tags.ts";
import { type ImageParts, type Item, itemsIn } from "./items.ts";

/** One running upload. */
export interface Upload extends ImageParts {
  readonly order: UploadOrder;
  /** Settings of the image that is uploaded. */
  readonly own: AwsDiskimage;
}

/** Milliseconds for one upload, for its import, and for each copy of its AMI. */
export const UPLOAD_MS = 6 * 3_600_000;
/** Pause between two looks at an AMI that is being made, milliseconds. */
export const POLL_MS = 5_000;

/** Tags of every resource of an upload. The tag wins over the image's metadata. */
export function uploadMetadata({ metadata, tag }: UploadOrder): Metadata {
  return { ...metadata, ...imageMetadata(tag) };
}

/** Client token of a call for an upload. A repetition after a crash has the same token, so EC2 does not make a second resource. */
export function uploadToken(tag: ImageTag, ...what: readonly string[]): string {
  return hashOf([imageMetadata(tag), ...what]);
}

/** Registers an AMI whose root disk is the snapshot. A continued upload finds its AMI by the tag before it comes here. */
export async function registered(
  { order, aws, own }: Upload,
  SnapshotId: string,
  signal: AbortSignal,
): Promise<string> {
  const request = {
    ...({ RootDeviceName: "/dev/sda1", VirtualizationType: "hvm", EnaSupport: own.enaSupport } as const),
    Architecture: own.architecture as "x86_64",
    ...present({ ImdsSupport: own.imdsSupport }),
    // Without a size of its own the disk has the snapshot's.
    BlockDeviceMappings: [
      { DeviceName: "/dev/sda1", Ebs: { DeleteOnTermination: true, SnapshotId, ...volumeOptions(own) } },
    ],
    TagSpecifications: tagSpecifications(["image"], uploadMetadata(order)),
  };
  const register = async (Name: string) =>
    (await aws.call("ec2.registerImage", { ...request, Name }, signal)).ImageId!;
  // AMI names are unique per account and region. Another provider or installation may have used the same second in its name.
  const first = await unlessRefused(register(order.name), "InvalidAMIName.Duplicate");
  return first ?? register(`${order.name}-${uploadToken(order.tag).slice(0, 8)}`);
}

/** An AMI as `ImageWork.stateOf` says it. */
export function imageState({ state, message }: Item): "ready" | "busy" | (string & {}) {
  if (state === "available") return "ready";
  return state === "pending" ? "busy" : `is ${state}: ${message}`;
}

/** Copies, shares and deprecates an AMI as its diskimage says: after the date AWS lists it for its owner alone. A repetition changes nothing. */
export async function* published(
  { order, aws, own, clock }: Upload,
  image: string,
  signal: AbortSignal,
): Steps<void> {
  const copies: { readonly at: Aws; readonly id: string }[] = [];
  // All copies are begun before one is waited for, as each takes minutes.
  for (const to of own.copyTo) {
    yield { step: "copy", deadlineMs: CALL_MS };
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
    yield { step: "wait", deadlineMs: UPLOAD_MS };
    await polled(clock, POLL_MS, signal, async () => {
      const [copy] = await itemsIn(at).withIds([id], signal);
      const state = copy === undefined ? "busy" : imageState(copy);
      if (state === "ready") return true;
      if (state === "busy") return undefined;
      throw new DriverError("transient", `image ${id} of ${order.file} ${state}`);
    });
  }
  yield { step: "publish", deadlineMs: CALL_MS };
  const Add = own.shareWith.map((UserId) => ({ UserId }));
  for (const { at, id: ImageId } of [{ at: aws, id: image }, ...copies]) {
    const shared = { ImageId, LaunchPermission: { Add } };
    if (Add.length > 0) await at.call("ec2.modifyImageAttribute", shared, signal);
    if (own.deprecateAfterMs === null) continue;
    const DeprecateAt = new Date(clock.now() + own.deprecateAfterMs);
    await at.call("ec2.enableImageDeprecation", { ImageId, DeprecateAt }, signal);
  }
}
