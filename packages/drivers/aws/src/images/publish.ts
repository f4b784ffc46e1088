import { CALL_MS, DriverError, polled, present, type Steps, wasRefused } from "@nodeyard/driver";
import type { Aws } from "../client/index.ts";
import { volumeOptions } from "../machines/bodies.ts";
import { tagSpecifications } from "../tags.ts";
import { type Item, itemsWith } from "./items.ts";
import { POLL_MS, UPLOAD_MS, type Upload, uploadMetadata, uploadToken } from "./upload.ts";

/**
 * Registers an AMI whose root disk is the snapshot, and returns its id. A continued upload finds its AMI by the tag before it comes here.
 */
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
  try {
    return await register(order.name);
  } catch (error) {
    // AMI names are unique per account and region. Another provider or installation has used the same second in its name.
    if (!wasRefused(error, "InvalidAMIName.Duplicate")) throw error;
    return register(`${order.name}-${uploadToken(order.tag).slice(0, 8)}`);
  }
}

/** An AMI as `ImageWork.stateOf` says it. */
export function imageState({ state, message }: Item): "ready" | "busy" | (string & {}) {
  if (state === "available") return "ready";
  return state === "pending" ? "busy" : `is ${state}: ${message}`;
}

/**
 * Applies the other settings of a diskimage to its AMI: copies to regions, launch permissions, deprecation date (after which AWS no longer
 * lists it for other accounts). A repetition has the same result.
 */
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
      const [copy] = await itemsWith(at, [id], signal);
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
