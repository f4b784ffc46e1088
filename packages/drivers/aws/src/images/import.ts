import type { ImageDiskContainer, ImportImageCommandInput } from "@aws-sdk/client-ec2";
import { DriverError, type Step, sleep } from "@nodeyard/driver";
import { codeOf } from "../client/index.ts";
import { tagListOf } from "../tags.ts";
import { hasObject, putObject, removeObjects } from "./bucket.ts";
import { type ImportTask, importTasks, taskOf } from "./found.ts";
import { CALL_MS, type Upload } from "./parts.ts";
import { keyOf, uploadMetadata, uploadToken } from "./tags.ts";

/** Between two polls: an import takes minutes, and so does waiting for the account's limit of concurrent imports. */
const POLL_MS = 15_000;
/** Statuses of tasks that go on. Those of imports of images have more stages. */
const ACTIVE = /^(active|pending|updating|validating|validated|converting|preparing|booting)/;

/**
 * Uploads a file to the bucket and lets EC2 import it. The object is deleted when the import has ended, successfully or not. The
 * result gets the tags of the import task.
 *
 * A continued upload finds its task by the tag and waits for it, or finds the file in the bucket and begins the task. Rejects
 * with "configuration" without a bucket, with "transient" when the import failed.
 */
export async function* importFile(
  upload: Upload,
  kind: "snapshot" | "image",
): AsyncGenerator<Step, ImportTask, void> {
  const { order, aws, signal, left, bucket } = upload;
  if (bucket === null)
    throw new DriverError(
      "configuration",
      "uploads need object-storage with a bucket-name; add it to the provider",
    );
  // The API cannot filter by tags, so all tasks are read.
  const own = (await importTasks(aws, kind, null, signal)).filter(
    ({ tag }) => tag?.uploadId === order.tag.uploadId && keyOf(tag) === keyOf(order.tag),
  );
  let task = own.find(({ status }) => status === "completed" || ACTIVE.test(status));
  if (task === undefined) {
    if (!(await hasObject(upload, bucket))) {
      yield { step: "upload", deadlineMs: left() };
      await putObject(upload, bucket);
    }
    yield { step: "import", deadlineMs: CALL_MS + (upload.importMs ?? 0) };
    task = await begun(upload, kind, bucket, own.length);
  }
  yield { step: "wait", deadlineMs: left() };
  task = await ended(upload, kind, task);
  // Before the status is judged: the file of a failed import is of no use, since the next attempt may have another one.
  await removeObjects(aws, bucket, order.tag, signal);
  if (task.status !== "completed")
    throw new DriverError(
      "transient",
      `import ${task.id} of ${order.file} is ${task.status}: ${task.message || "no reason given"}`,
    );
  yield { step: "tags", deadlineMs: CALL_MS };
  const Resources = [...task.snapshots, ...(task.image === null ? [] : [task.image])];
  const Tags = tagListOf(uploadMetadata(order));
  await aws.ec2((ec2, to) => ec2.createTags({ Resources, Tags }, to), signal);
  return task;
}

/** Starts an import. AWS limits concurrent imports per account; waits for a free place up to the provider's `image-import-timeout`. */
async function begun(
  { order, aws, signal, clock, own, importMs }: Upload,
  kind: "snapshot" | "image",
  bucket: string,
  failed: number,
): Promise<ImportTask> {
  const container: ImageDiskContainer = {
    Description: order.name,
    Format: order.format,
    UserBucket: { S3Bucket: bucket, S3Key: keyOf(order.tag) },
  };
  const common = {
    Description: order.name,
    // EC2 answers a used token with the same task for ever, also when that has failed. The number of failed tasks makes a new token.
    ClientToken: uploadToken(order.tag, kind, String(failed)).slice(0, 64),
    TagSpecifications: [
      { ResourceType: `import-${kind}-task` as const, Tags: tagListOf(uploadMetadata(order)) },
    ],
  };
  const image: ImportImageCommandInput = {
    ...common,
    Architecture: own.architecture,
    DiskContainers: [container],
  };
  const send = (): Promise<{ readonly ImportTaskId?: string | undefined }> =>
    aws.ec2<{ readonly ImportTaskId?: string | undefined }>(
      (ec2, to) =>
        kind === "image"
          ? ec2.importImage(image, to)
          : ec2.importSnapshot({ ...common, DiskContainer: container }, to),
      signal,
    );
  // Without image-import-timeout the first refusal ends the attempt; the builder tries again later.
  const end = clock.monotonic() + (importMs ?? 0);
  for (;;) {
    try {
      return taskOf({ ...(await send()), Status: "active" });
    } catch (error) {
      if (codeOf(error) !== "ResourceCountLimitExceeded" || clock.monotonic() + POLL_MS > end) throw error;
    }
    await sleep(clock, POLL_MS, signal);
  }
}

/** The task when it has ended, successfully or not. The step's deadline is the limit. */
async function ended(
  { aws, signal, clock }: Upload,
  kind: "snapshot" | "image",
  task: ImportTask,
): Promise<ImportTask> {
  for (let known = task; ; ) {
    if (!ACTIVE.test(known.status)) return known;
    await sleep(clock, POLL_MS, signal);
    const [now] = await importTasks(aws, kind, [task.id], signal);
    if (now === undefined) throw new DriverError("transient", `import ${task.id} is gone`);
    known = now;
  }
}
