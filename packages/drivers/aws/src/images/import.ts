import {
  CALL_MS,
  DriverError,
  isOfUpload,
  orThrow,
  polled,
  type Step,
  sleep,
  uploadKey,
  wasRefused,
} from "@nodeyard/driver";
import { tagListOf } from "../tags.ts";
import type { filesOf } from "./bucket.ts";
import { itemsIn } from "./items.ts";
import { UPLOAD_MS, type Upload, uploadMetadata, uploadToken } from "./upload.ts";

/** Between two polls: an import takes minutes, and so does waiting for the account's limit of concurrent imports. */
const POLL_MS = 15_000;
/** States of tasks that go on. Those of imports of images have more stages. */
const ACTIVE = /^(active|pending|updating|validating|validated|converting|preparing|booting)/;

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
  const { order, aws, settings, clock, own } = upload;
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
    const end = clock.monotonic() + (settings.imageImportTimeoutMs ?? 0);
    return polled(clock, POLL_MS, signal, async () => {
      try {
        const { ImportTaskId } =
          kind === "image"
            ? await aws.call("ec2.importImage", image, signal)
            : await aws.call("ec2.importSnapshot", { ...common, DiskContainer: disk }, signal);
        return ImportTaskId!;
      } catch (error) {
        const isLast = clock.monotonic() + POLL_MS > end;
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
    yield { step: "import", deadlineMs: CALL_MS + (settings.imageImportTimeoutMs ?? 0) };
    id = await begin(tasks.length);
  }
  // Also where an earlier attempt sent the file.
  order.progress(order.size);
  yield { step: "wait", deadlineMs: UPLOAD_MS };
  // EC2 may not show a task that was just begun, which would be taken for gone.
  if (isNew) await sleep(clock, POLL_MS, signal);
  const task = await polled(clock, POLL_MS, signal, async () => {
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
