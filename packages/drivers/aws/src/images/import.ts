import type { ImportImageTask } from "@aws-sdk/client-ec2";
import { CALL_MS, DriverError, type ImageTag, imageTagOf, polled, type Steps, sleep } from "@nodeyard/driver";
import { type Aws, codeOf } from "../client/index.ts";
import { metadataOf, tagListOf, tagSpecifications } from "../tags.ts";
import { hasObject, putObject, removeObjects } from "./bucket.ts";
import type { Upload } from "./parts.ts";
import { keyOf, uploadMetadata, uploadToken } from "./tags.ts";

/** Between two polls: an import takes minutes, and so does waiting for the account's limit of concurrent imports. */
const POLL_MS = 15_000;
/** Statuses of tasks that go on. Those of imports of images have more stages. */
const ACTIVE = /^(active|pending|updating|validating|validated|converting|preparing|booting)/;

type Kind = "snapshot" | "image";

/** An import task, which makes a snapshot or an AMI from a file in a bucket. */
export interface ImportTask {
  readonly id: string;
  /** Null: the task is not ours. */
  readonly tag: ImageTag | null;
  /** Tags of the task itself. EC2 does not copy them to the result. */
  readonly tags: NonNullable<ImportImageTask["Tags"]>;
  /** "active" or "completed"; every other status means failed or failing. */
  readonly status: string;
  /** Why it failed, or what it is doing. */
  readonly message: string;
  /** Ids of the AMI and the snapshots that it made so far, the AMI first. */
  readonly made: readonly string[];
}

/** All import tasks of this account in one region, or those with these ids. The API cannot filter by tags. */
async function importTasks(
  aws: Aws,
  kind: Kind,
  signal: AbortSignal,
  ids: readonly string[] | null = null,
): Promise<readonly ImportTask[]> {
  const which = ids === null ? {} : { ImportTaskIds: [...ids] };
  if (kind === "image") {
    const all = await aws.list("ec2.describeImportImageTasks", "ImportImageTasks", which, signal);
    return all.map(({ ImageId, SnapshotDetails = [], ...task }) =>
      taskOf(task, [ImageId, ...SnapshotDetails.map(({ SnapshotId }) => SnapshotId)]),
    );
  }
  const all = await aws.list("ec2.describeImportSnapshotTasks", "ImportSnapshotTasks", which, signal);
  return all.map(({ SnapshotTaskDetail: { SnapshotId, ...detail } = {}, ...task }) =>
    taskOf({ ...detail, ...task }, [SnapshotId]),
  );
}

/** Imports of both kinds. */
export async function allImportTasks(aws: Aws, signal: AbortSignal): Promise<readonly ImportTask[]> {
  const kinds = ["snapshot", "image"] as const;
  return (await Promise.all(kinds.map((kind) => importTasks(aws, kind, signal)))).flat();
}

/** A task as the API describes it: one that was just begun has nothing but its id. */
function taskOf(
  { ImportTaskId = "", Tags = [], Status = "unknown", StatusMessage = "" }: ImportImageTask,
  made: readonly (string | undefined)[] = [],
): ImportTask {
  return {
    ...{ id: ImportTaskId, tag: imageTagOf(metadataOf(Tags)), tags: Tags },
    ...{ status: Status, message: StatusMessage, made: made.flatMap((id) => id ?? []) },
  };
}

/**
 * Uploads a file to the bucket and lets EC2 import it. The object is deleted when the import has ended, successfully or not. The
 * result gets the tags of the import task. Returns the id of the AMI or snapshot.
 *
 * A continued upload finds its task by the tag and waits for it, or finds the file in the bucket and begins the task. Rejects
 * with "configuration" without a bucket, with "transient" when the import failed.
 */
export async function* importFile(upload: Upload, kind: Kind): Steps<string> {
  const { order, aws, signal, left, settings, clock } = upload;
  const { bucket } = settings;
  if (bucket === null)
    throw new DriverError(
      "configuration",
      "uploads need object-storage with a bucket-name; add it to the provider",
    );
  const own = (await importTasks(aws, kind, signal)).filter(
    ({ tag }) => tag !== null && keyOf(tag) === keyOf(order.tag),
  );
  let task = own.find(({ status }) => status === "completed" || ACTIVE.test(status));
  if (task === undefined) {
    if (!(await hasObject(upload, bucket))) {
      yield { step: "upload", deadlineMs: left() };
      await putObject(upload, bucket);
    }
    yield { step: "import", deadlineMs: CALL_MS + (settings.imageImportTimeoutMs ?? 0) };
    task = await begun(upload, kind, bucket, own.length);
  }
  yield { step: "wait", deadlineMs: left() };
  const { id } = task;
  while (ACTIVE.test(task.status)) {
    await sleep(clock, POLL_MS, signal);
    [task] = await importTasks(aws, kind, signal, [id]);
    if (task === undefined) throw new DriverError("transient", `import ${id} is gone`);
  }
  // Before the status is judged: the file of a failed import is of no use, since the next attempt may have another one.
  await removeObjects(aws, bucket, order.tag, signal);
  if (task.status !== "completed")
    throw new DriverError(
      "transient",
      `import ${id} of ${order.file} is ${task.status}: ${task.message || "no reason given"}`,
    );
  yield { step: "tags", deadlineMs: CALL_MS };
  const request = { Resources: [...task.made], Tags: tagListOf(uploadMetadata(order)) };
  await aws.call("ec2.createTags", request, signal);
  return task.made[0]!;
}

/** Starts an import. AWS limits concurrent imports per account; waits for a free place up to the provider's `image-import-timeout`. */
async function begun(
  { order, aws, signal, clock, own, settings }: Upload,
  kind: Kind,
  S3Bucket: string,
  failed: number,
): Promise<ImportTask> {
  const disk = {
    Description: order.name,
    Format: order.format,
    UserBucket: { S3Bucket, S3Key: keyOf(order.tag) },
  };
  const common = {
    Description: order.name,
    // EC2 answers a used token with the same task for ever, also when that has failed. The number of failed tasks makes a new token.
    ClientToken: uploadToken(order.tag, kind, String(failed)).slice(0, 64),
    TagSpecifications: tagSpecifications([`import-${kind}-task`], uploadMetadata(order)),
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
      return taskOf({ ...(ImportTaskId && { ImportTaskId }), Status: "active" });
    } catch (error) {
      const isLast = clock.monotonic() + POLL_MS > end;
      if (codeOf(error) !== "ResourceCountLimitExceeded" || isLast) throw error;
      return undefined;
    }
  });
}
