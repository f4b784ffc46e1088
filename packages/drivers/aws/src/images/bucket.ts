import type { CompletedPart } from "@aws-sdk/client-s3";
import { type FoundPart, type ImageTag, inParallel, isOfUpload, pieces, streamed } from "@nodeyard/driver";
import type { Aws } from "../client/index.ts";
import { metadataOf } from "../tags.ts";
import type { Upload } from "./parts.ts";
import { keyOf, objectTagging, tagOfKey } from "./tags.ts";

/** Bytes. S3's limits: an object has up to 10,000 parts of at least 5 MiB. */
const LEAST_PART = 16 * 1024 * 1024;
const MOST_PARTS = 10_000;
/** Parts in memory at the same time. */
const PARALLEL = 4;

/**
 * Uploads the file in parts. An upload that a crash interrupted under the same key is aborted first: S3 charges for its parts.
 * The object appears with the last call only, so it is complete or not there.
 */
export async function putObject({ order, aws, signal, openFile }: Upload, Bucket: string): Promise<void> {
  const at = { Bucket, Key: keyOf(order.tag) };
  await removeObjects(aws, Bucket, order.tag, signal);
  const begin = { ...at, Tagging: objectTagging(order) };
  const { UploadId } = await aws.call("s3.createMultipartUpload", begin, signal);
  const parts: CompletedPart[] = [];
  // Larger only where MOST_PARTS of LEAST_PART do not hold the file, because PARALLEL parts are in memory.
  const length = Math.max(LEAST_PART, Math.ceil(order.size / MOST_PARTS));
  const all = pieces(streamed(openFile, order), length);
  for await (const _ of inParallel(all, PARALLEL, async ({ index, bytes }) => {
    const request = { ...at, UploadId, PartNumber: index + 1, Body: bytes };
    const { ETag, ChecksumCRC32 } = await aws.call("s3.uploadPart", request, signal);
    // S3 refuses parts that are not in order, and they arrive in any.
    parts[index] = { PartNumber: index + 1, ETag, ChecksumCRC32 };
  }));
  const end = { ...at, UploadId, MultipartUpload: { Parts: parts } };
  await aws.call("s3.completeMultipartUpload", end, signal);
}

/** Whether the complete file of an upload is in the bucket. The size is enough: S3 checked the parts' checksums. */
export async function hasObject({ order, aws, signal }: Upload, Bucket: string): Promise<boolean> {
  const found = await aws.maybe("s3.headObject", { Bucket, Key: keyOf(order.tag) }, signal);
  return found?.ContentLength === order.size;
}

/** Deletes the object of an upload and aborts its unfinished multipart uploads. None is no error. */
export async function removeObjects(
  aws: Aws,
  Bucket: string,
  tag: ImageTag,
  signal: AbortSignal,
): Promise<void> {
  const key = keyOf(tag);
  // The prefix may also match longer keys.
  for (const { Key, UploadId } of await multipartUploads(aws, Bucket, key, signal))
    if (Key === key) await aws.maybe("s3.abortMultipartUpload", { Bucket, Key, UploadId }, signal);
  // S3 reports success when the object does not exist.
  await aws.call("s3.deleteObject", { Bucket, Key: key }, signal);
}

/** Objects whose keys begin with `Prefix`, complete or unfinished. */
export async function listObjects(
  aws: Aws,
  Bucket: string,
  Prefix: string,
  signal: AbortSignal,
): Promise<readonly FoundPart[]> {
  const objects = await aws.list("s3.listObjectsV2", "Contents", { Bucket, Prefix }, signal);
  const begun = await multipartUploads(aws, Bucket, Prefix, signal);
  // Objects exist only during their import, so few need a call for their tags. Tags of an unfinished multipart upload cannot be read.
  const finished = objects.map(async ({ Key = "" }) =>
    (await isTagged(aws, Bucket, Key, signal)) ? Key : [],
  );
  const keys = new Set([...(await Promise.all(finished)).flat(), ...begun.flatMap(({ Key }) => Key ?? [])]);
  return [...keys].flatMap((id) => {
    const imageTag = tagOfKey(id);
    return imageTag === null ? [] : { type: "object", id, tag: null, imageTag };
  });
}

/** Whether the tags of an object agree with its key. An object that someone else put under such a key must not be deleted. */
async function isTagged(aws: Aws, Bucket: string, Key: string, signal: AbortSignal): Promise<boolean> {
  const named = tagOfKey(Key);
  if (named === null) return false;
  const found = await aws.maybe("s3.getObjectTagging", { Bucket, Key }, signal);
  return isOfUpload(metadataOf(found?.TagSet), named);
}

async function multipartUploads(aws: Aws, Bucket: string, Prefix: string, signal: AbortSignal) {
  // One page has 1000 entries, more than the unfinished uploads of one provider will ever be.
  const { Uploads = [] } = await aws.call("s3.listMultipartUploads", { Bucket, Prefix }, signal);
  return Uploads;
}
