import { hashOf, type ImageTag, imageMetadata, type Metadata, type UploadOrder } from "@nodeyard/driver";

/** Tags of every resource of an upload. The tag wins over the image's metadata. */
export function uploadMetadata({ metadata, tag }: UploadOrder): Metadata {
  return { ...metadata, ...imageMetadata(tag) };
}

/** Client token of a call for an upload. A repetition after a crash has the same token, so EC2 does not make a second resource. */
export function uploadToken(tag: ImageTag, ...what: readonly string[]): string {
  return hashOf([imageMetadata(tag), ...what]);
}

/** Start of all keys in the bucket, which may have files of others. */
const ROOT = "nodeyard";

/**
 * Key of an upload's file in the bucket. The key contains the tag, so that a listing shows the owner without a call per object.
 * Parts are encoded, so a slash in a name does not split them.
 */
export function keyOf({ installation, provider, image, buildId, uploadId }: ImageTag): string {
  return keysOf(installation, provider) + [image, buildId, uploadId].map(encodeURIComponent).join("/");
}

/** The prefix of all keys of one provider. */
export function keysOf(installation: string, provider: string): string {
  return `${[ROOT, installation, provider].map(encodeURIComponent).join("/")}/`;
}

/** The tag in a key; null for any other key. */
export function tagOfKey(key: string): ImageTag | null {
  const parts = key.split("/");
  if (parts.length !== 6 || parts[0] !== ROOT) return null;
  try {
    const [, installation, provider, image, buildId, uploadId] = parts.map(decodeURIComponent);
    if (!installation || !provider || !image || !buildId || !uploadId) return null;
    return { installation, provider, image, buildId, uploadId };
  } catch {
    return null;
  }
}

/** S3 allows ten tags per object and restricts their characters (S3 User Guide, "Categorizing your storage using tags"). */
export function objectTagging({ tag, metadata }: UploadOrder): string {
  // The tag first, since the rest may be cut.
  const all = Object.entries({ ...imageMetadata(tag), ...metadata, ...imageMetadata(tag) });
  const allowed = all.filter((pair) => pair.every((text) => /^[\w +\-=.:/@]*$/.test(text)));
  return new URLSearchParams(allowed.slice(0, 10)).toString();
}
