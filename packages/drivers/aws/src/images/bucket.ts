import type { CompletedPart } from "@aws-sdk/client-s3";
import { type FoundPart, type ImageTag, imageTagOf, inParallel, pieces, streamed } from "@nodeyard/driver";
import { type Aws, allPages } from "../client/index.ts";
import { metadataOf } from "../tags.ts";
import { isGone, type Upload, unlessGone } from "./parts.ts";
import { keyOf, keysOf, objectTagging, tagOfKey } from "./tags.ts";

/** Bytes. S3's limits: an object has up to 10,000 parts of at least 5 MiB. */
const LEAST_PART = 16 * 1024 * 1024;
const MOST_PARTS = 10_000;
/** Parts in memory at the same time. */
const PARALLEL = 4;

/**
 * Uploads the file in parts. An upload that a crash interrupted under the same key is aborted first: S3 charges for its parts.
 * The object appears with the last call only, so it is complete or not there.
 */
export async function putObject({ order, aws, signal, openFile }: Upload, bucket: string): Promise<void> {
  const at = { Bucket: bucket, Key: keyOf(order.tag) };
  await removeObjects(aws, bucket, order.tag, signal);
  const { UploadId } = await aws.s3(
    (s3, to) => s3.createMultipartUpload({ ...at, Tagging: objectTagging(order) }, to),
    signal,
  );
  const parts: CompletedPart[] = [];
  const length = Math.max(LEAST_PART, Math.ceil(order.size / MOST_PARTS));
  // Larger only where MOST_PARTS of LEAST_PART do not hold the file, because PARALLEL parts are in memory.
  const all = pieces(streamed(openFile, order), length);
  for await (const _ of inParallel(all, PARALLEL, async ({ index, bytes }) => {
    const request = { ...at, UploadId, PartNumber: index + 1, Body: bytes };
    const { ETag, ChecksumCRC32 } = await aws.s3((s3, to) => s3.uploadPart(request, to), signal);
    parts.push({ PartNumber: index + 1, ETag, ChecksumCRC32 });
  }));
  // S3 refuses parts that are not in order, and they arrive in any.
  const MultipartUpload = { Parts: parts.sort((a, b) => a.PartNumber! - b.PartNumber!) };
  await aws.s3((s3, to) => s3.completeMultipartUpload({ ...at, UploadId, MultipartUpload }, to), signal);
}

/** Whether the complete file of an upload is in the bucket. The size is enough: S3 checked the parts' checksums. */
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

/** Deletes the object of an upload and aborts its unfinished multipart uploads. None is no error. */
export async function removeObjects(
  aws: Aws,
  bucket: string,
  tag: ImageTag,
  signal: AbortSignal,
): Promise<void> {
  const key = keyOf(tag);
  const begun = await multipartUploads(aws, bucket, key, signal);
  // The prefix may also match longer keys.
  for (const { Key, UploadId } of begun)
    if (Key === key)
      await aws
        .s3((s3, to) => s3.abortMultipartUpload({ Bucket: bucket, Key, UploadId }, to), signal)
        .catch(unlessGone);
  // S3 reports success when the object does not exist.
  await aws.s3((s3, to) => s3.deleteObject({ Bucket: bucket, Key: key }, to), signal);
}

/** Objects of a provider, complete or unfinished. */
export async function listObjects(
  aws: Aws,
  bucket: string,
  { installation, provider }: { readonly installation: string; readonly provider: string },
  signal: AbortSignal,
): Promise<readonly FoundPart[]> {
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
  // Objects exist only during their import, so few need a call for their tags. Tags of an unfinished multipart upload cannot be read.
  const finished = await Promise.all(
    objects.map(async ({ Key = "" }) => ((await isTagged(aws, bucket, Key, signal)) ? [Key] : [])),
  );
  const keys = new Set([...finished.flat(), ...begun.flatMap(({ Key }) => Key ?? [])]);
  return [...keys].flatMap((id) => {
    const imageTag = tagOfKey(id);
    return imageTag === null ? [] : [{ type: "object", id, tag: null, imageTag }];
  });
}

/** Whether the tags of an object agree with its key. An object that someone else put under such a key must not be deleted. */
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
  // One page has 1000 entries, more than the unfinished uploads of one provider will ever be.
  const { Uploads } = await aws.s3((s3, to) => s3.listMultipartUploads({ Bucket, Prefix }, to), signal);
  return Uploads ?? [];
}
