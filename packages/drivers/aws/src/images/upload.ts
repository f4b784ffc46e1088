import {
  CALL_MS,
  DriverError,
  hashOf,
  type ImageTag,
  imageMetadata,
  isOfUpload,
  type Metadata,
  orThrow,
  polled,
  present,
  type Step,
  type Steps,
  sleep,
  type UploadOrder,
  unlessRefused,
  uploadKey,
  wasRefused,
} from "@nodeyard/driver";
import type { Site } from "../account.ts";
import type { Aws } from "../client/aws.ts";
import type { AwsDiskimage } from "../config-table.ts";
import { volumeOptions } from "../machines/launch.ts";
import { tagListOf, tagSpecifications } from "../tags.ts";
import type { filesOf } from "./bucket.ts";
import { type Item, itemsIn } from "./items.ts";

/** One running upload. */
export interface Upload extends Site {
  readonly order: UploadOrder;
  /** Settings of the image that is uploaded. */
  readonly own: AwsDiskimage;
}

/** Milliseconds for one upload, for its import, and for each copy of its AMI. */
export const UPLOAD_MS = 6 * 3_600_000;
/** Pause between two looks at an AMI that is being made, milliseconds. */
export const POLL_MS = 5_000;
/** Between two polls: an import takes minutes, and so does waiting for the account's limit of concurrent imports. */
const IMPORT_POLL_MS = 15_000;
/** States of tasks that go on. Those of imports of images have more stages. */
const ACTIVE = /^(active|pending|updating|validating|validated|converting|preparing|booting)/;

/** Tags of every resource of an upload. The tag wins over the image's metadata. */
export function uploadMetadata({ metadata, tag }: UploadOrder): Metadata {
  return { ...metadata, ...imageMetadata(tag) };
}

/** Client token of a call for an upload. A repetition after a crash has the same token, so EC2 does not make a second resource. */
export function uploadToken(tag: ImageTag, ...what: readonly string[]): string {
  return hashOf([imageMetadata(tag), ...what]);
}

/**
 * Uploads a file to the bucket and lets EC2 import it. The object is deleted when the import has ended, successfully or not. The
 * result gets the tags of the upload. Returns the id of the AMI or snapshot.
 *
 * A continued upload finds its task by the tag and waits for it, or finds the file in the bucket and begins the task. Rejects
 * with "configuration" without a bucket, with "transient" when the import failed.
 */
export async function* importFile(
  upload: Upload,
  ofBucket: ReturnType<typeof filesOf>,
  signal: AbortSignal,
): AsyncGenerator<number | Step, string, void> {
  const { order, aws, clock, own } = upload;
  const waitMs = upload.config.own.imageImportTimeoutMs ?? 0;
  const kind = own.importMethod === "image" ? "image" : "snapshot";
  const why = "uploads need object-storage with a bucket-name; add it to the provider";
  const files = orThrow(ofBucket, why);
  const key = uploadKey(order.tag);
  const Tags = tagListOf(uploadMetadata(order));

  /** Starts an import. AWS limits concurrent imports per account; waits for a free place up to the provider's `image-import-timeout`. */
  const begin = async (failed: number) => {
    const UserBucket = { S3Bucket: files.bucket, S3Key: key };
    const disk = { Description: order.name, Format: order.format, UserBucket };
    const common = {
      Description: order.name,
      // EC2 answers a used token with the same task for ever, also when that has failed. The number of failed tasks makes a new token.
      ClientToken: uploadToken(order.tag, kind, String(failed)).slice(0, 64),
      TagSpecifications: [{ ResourceType: `import-${kind}-task` as const, Tags }],
    };
    const image = { ...common, Architecture: own.architecture, DiskContainers: [disk] };
    // Without image-import-timeout the first refusal ends the attempt; the builder tries again later.
    const end = clock.monotonic() + waitMs;
    return polled(clock, IMPORT_POLL_MS, signal, async () => {
      try {
        const { ImportTaskId } =
          kind === "image"
            ? await aws.call("ec2.importImage", image, signal)
            : await aws.call("ec2.importSnapshot", { ...common, DiskContainer: disk }, signal);
        return ImportTaskId!;
      } catch (error) {
        const isLast = clock.monotonic() + IMPORT_POLL_MS > end;
        if (!wasRefused(error, "ResourceCountLimitExceeded") || isLast) throw error;
        return undefined;
      }
    });
  };

  const items = itemsIn(aws);
  const all = await items.tasks(kind, signal);
  const tasks = all.filter(({ metadata }) => isOfUpload(metadata, order.tag));
  let id = tasks.find(({ state }) => state === "completed" || ACTIVE.test(state))?.id;
  const isNew = id === undefined;
  if (id === undefined) {
    if (!(await files.has(key, signal))) yield* files.put(key, order, signal);
    yield { step: "import", deadlineMs: CALL_MS + waitMs };
    id = await begin(tasks.length);
  }
  // Also where an earlier attempt sent the file.
  order.progress(order.size);
  yield { step: "wait", deadlineMs: UPLOAD_MS };
  // EC2 may not show a task that was just begun, which would be taken for gone.
  if (isNew) await sleep(clock, IMPORT_POLL_MS, signal);
  const task = await polled(clock, IMPORT_POLL_MS, signal, async () => {
    const [now] = await items.tasks(kind, signal, id);
    const there = orThrow(now, `import ${id} is gone`, "transient");
    return ACTIVE.test(there.state) ? undefined : there;
  });
  // Before the state is judged: the file of a failed import is of no use, since the next attempt may have another one.
  await files.delete(key, signal);
  if (task.state !== "completed")
    throw new DriverError("transient", `import ${id} of ${order.file} is ${task.state}: ${task.message}`);
  yield { step: "tags", deadlineMs: CALL_MS };
  await aws.call("ec2.createTags", { Resources: [...task.parts], Tags }, signal);
  return task.parts[0]!;
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
