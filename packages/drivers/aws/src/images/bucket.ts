import type { Part } from "@aws-sdk/client-s3";
import {
  allPages,
  imageMetadata,
  isOfUpload,
  type PartedStore,
  partedFiles,
  present,
  tagInKey,
  type UploadOrder,
  unlessRefused,
  uploadKeys,
} from "@nodeyard/driver";
import type { Site } from "../account.ts";
import { metadataOf } from "../tags.ts";

/** What S3 calls the content of a part. */
type Mark = Pick<Part, "ETag" | "ChecksumCRC32">;

/** Files of a provider's uploads in its bucket; undefined: it has none. */
export function filesOf({ aws, openFile, installation, config }: Site) {
  const { bucket: Bucket } = config.own;
  if (Bucket === null) return undefined;
  const store: PartedStore<Mark> = {
    async whole(Prefix, signal) {
      const pages = await allPages(
        `list of bucket ${Bucket}`,
        (ContinuationToken) =>
          aws.call("s3.listObjectsV2", { Bucket, Prefix, ...present({ ContinuationToken }) }, signal),
        ({ NextContinuationToken }) => NextContinuationToken,
      );
      // Objects exist only during their import, so few need a call for their tags.
      const keys = pages
        .flatMap(({ Contents = [] }) => Contents)
        .map(async ({ Key = "" }) => {
          const tag = tagInKey(Key);
          const found = tag && (await aws.maybe("s3.getObjectTagging", { Bucket, Key }, signal));
          // An object that someone else put under such a key must not be deleted.
          return tag !== null && isOfUpload(metadataOf(found?.TagSet), tag) ? Key : [];
        });
      return (await Promise.all(keys)).flat();
    },
    async begun(Prefix, signal) {
      // One page has 1000 entries, more than the unfinished uploads of one provider will ever be.
      const { Uploads = [] } = await aws.call("s3.listMultipartUploads", { Bucket, Prefix }, signal);
      return Uploads.map(({ Key = "", UploadId = "" }) => [Key, UploadId] as const);
    },
    async begin(Key, order, signal) {
      const request = { Bucket, Key, Tagging: objectTagging(order) };
      return (await aws.call("s3.createMultipartUpload", request, signal)).UploadId!;
    },
    async parts(Key, UploadId, signal) {
      const pages = allPages(
        `list of parts of ${Key}`,
        (PartNumberMarker) =>
          aws.call("s3.listParts", { Bucket, Key, UploadId, ...present({ PartNumberMarker }) }, signal),
        ({ IsTruncated, NextPartNumberMarker }) => (IsTruncated ? NextPartNumberMarker : undefined),
      );
      // Policies of older versions lack the right, and all parts can be sent again.
      const known = (await unlessRefused(pages, "AccessDenied")) ?? [];
      return new Map(known.flatMap(({ Parts = [] }) => Parts.map((part) => [part.PartNumber!, part])));
    },
    put: (Key, UploadId, PartNumber, Body, signal) =>
      aws.call("s3.uploadPart", { Bucket, Key, UploadId, PartNumber, Body }, signal),
    async complete(Key, UploadId, parts, signal) {
      const Parts = parts.map(([PartNumber, mark]) => ({ ...mark, PartNumber }));
      const end = { Bucket, Key, UploadId, MultipartUpload: { Parts } };
      await aws.call("s3.completeMultipartUpload", end, signal);
    },
    async delete(Key, UploadId, signal) {
      if (UploadId !== undefined)
        await aws.maybe("s3.abortMultipartUpload", { Bucket, Key, UploadId }, signal);
      // S3 reports success when the object does not exist.
      else await aws.call("s3.deleteObject", { Bucket, Key }, signal);
    },
  };
  const prefix = uploadKeys({ installation, provider: config.name });
  const files = partedFiles(store, openFile, { prefix, tagOf: tagInKey });
  return { ...files, bucket: Bucket };
}

/** S3 allows ten tags per object and restricts their characters (S3 User Guide, "Categorizing your storage using tags"). */
function objectTagging({ tag, metadata }: UploadOrder): string {
  // The tag first, since the rest may be cut.
  const all = Object.entries({ ...imageMetadata(tag), ...metadata, ...imageMetadata(tag) });
  const allowed = all.filter((pair) => pair.every((text) => /^[\w +\-=.:/@]*$/.test(text)));
  return new URLSearchParams(allowed.slice(0, 10)).toString();
}
