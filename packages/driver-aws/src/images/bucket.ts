import type { CompletedPart } from "@aws-sdk/client-s3";
import { type ImageTag, imageTagOf, inParallel, pieces, type Resource, streamed } from "@nodeyard/driver";
import { type Aws, allPages } from "../client/index.ts";
import { metadataOf } from "../tags.ts";
import { isGone, type Upload, unlessGone } from "./parts.ts";
import { keyOf, keysOf, objectTagging, tagOfKey } from "./tags.ts";

/** S3 takes 10,000 parts of one object, of 5 MiB at least. */
const LEAST_PART = 16 * 1024 * 1024;
const MOST_PARTS = 10_000;
/** Parts in memory at once. */
const PARALLEL = 4;

/** Sends the file in parts. What a crash left under the same key is ended by `removeObjects`, or by the upload that follows. */
export async function putObject({ order, aws, signal, openFile }: Upload, bucket: string): Promise<void> {
  const at = { Bucket: bucket, Key: keyOf(order.tag) };
  await removeObjects(aws, bucket, order.tag, signal);
  const { UploadId } = await aws.s3(
    (s3, to) => s3.createMultipartUpload({ ...at, Tagging: objectTagging(order) }, to),
    signal,
  );
  const parts: CompletedPart[] = [];
  const length = Math.max(LEAST_PART, Math.ceil(order.size / MOST_PARTS));
  const all = pieces(streamed(openFile, order), length);
  for await (const _ of inParallel(all, PARALLEL, async ({ index, bytes }) => {
    const request = { ...at, UploadId, PartNumber: index + 1, Body: bytes };
    const { ETag, ChecksumCRC32 } = await aws.s3((s3, to) => s3.uploadPart(request, to), signal);
    parts.push({ PartNumber: index + 1, ETag, ChecksumCRC32 });
  }));
  const MultipartUpload = { Parts: parts.sort((a, b) => a.PartNumber! - b.PartNumber!) };
  await aws.s3((s3, to) => s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload }, to), signal);
}

/** Whether the whole file of an upload is in the bucket. */
export async function hasObject({ order, aws, signal }: Upload, bucket: string): Promise<boolean> {
  try {
    const { ContentLength } = await aws.s3(
      (s3, to) => s3.headObject({ Bucket: bucket, Key: keyOf(order.tag) }, to),
      signal,
    );
    return ContentLength === order.size;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

/** The object of an upload, and what was begun of it. */
export async function removeObjects(
  aws: Aws,
  bucket: string,
  tag: ImageTag,
  signal: AbortSignal,
): Promise<void> {
  const key = keyOf(tag);
  const begun = await multipartUploads(aws, bucket, key, signal);
  for (const { Key, UploadId } of begun)
    if (Key === key)
      await aws
        .s3((s3, to) => s3.abortMultipartUpload({ Bucket: bucket, Key, UploadId }, to), signal)
        .catch(unlessGone);
  // S3 says yes to the deletion of what is not there.
  await aws.s3((s3, to) => s3.deleteObject({ Bucket: bucket, Key: key }, to), signal);
}

/** Objects of a provider, finished or not. */
export async function listObjects(
  aws: Aws,
  bucket: string,
  { installation, provider }: { readonly installation: string; readonly provider: string },
  signal: AbortSignal,
): Promise<readonly Resource[]> {
  const Prefix = keysOf(installation, provider);
  const objects = await allPages(
    async ({ NextToken }) => {
      const more = NextToken === undefined ? {} : { ContinuationToken: NextToken };
      const page = await aws.s3(
        (s3, to) => s3.listObjectsV2({ Bucket: bucket, Prefix, ...more }, to),
        signal,
      );
      return { keys: page.Contents ?? [], NextToken: page.NextContinuationToken };
    },
    ({ keys }) => keys,
  );
  const begun = await multipartUploads(aws, bucket, Prefix, signal);
  // Objects are there only while they are imported, so few are asked for their tags. What was begun has none yet that can be read.
  const finished = await Promise.all(
    objects.map(async ({ Key = "" }) => ((await isTagged(aws, bucket, Key, signal)) ? [Key] : [])),
  );
  const keys = new Set([...finished.flat(), ...begun.flatMap(({ Key }) => Key ?? [])]);
  return [...keys].flatMap((id) => {
    const imageTag = tagOfKey(id);
    return imageTag === null ? [] : [{ type: "object", id, tag: null, imageTag, resources: {} }];
  });
}

/** Whether an object says of itself what its key says: what somebody else puts there is never ours. */
async function isTagged(aws: Aws, bucket: string, key: string, signal: AbortSignal): Promise<boolean> {
  const named = tagOfKey(key);
  if (named === null) return false;
  try {
    const at = { Bucket: bucket, Key: key };
    const { TagSet } = await aws.s3((s3, to) => s3.getObjectTagging(at, to), signal);
    const found = imageTagOf(metadataOf(TagSet));
    return found !== null && keyOf(found) === key;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

async function multipartUploads(aws: Aws, Bucket: string, Prefix: string, signal: AbortSignal) {
  // A thousand on the first page: more unfinished uploads of one provider than there will be.
  const { Uploads } = await aws.s3((s3, to) => s3.listMultipartUploads({ Bucket, Prefix }, to), signal);
  return Uploads ?? [];
}
