import type { Tag } from "../contract.ts";
import type { ImageTag } from "../offers.ts";
import type { Metadata } from "./types.ts";

// The old names, so that what Nodepool made is read, and the installation, which it had not.
const INSTALLATION = "nodeyard_installation";
const PROVIDER = "nodepool_provider_name";
const POOL = "nodepool_pool_name";
const NODE = "nodepool_node_id";
const BUILD = "nodepool_build_id";
const UPLOAD = "nodepool_upload_id";
const IMAGE = "nodeyard_image";

/** The tag as what a cloud stores beside a machine (spec launcher.md, 3.11). */
export function machineMetadata({ installation, provider, pool, nodeId }: Tag): Metadata {
  return { [INSTALLATION]: installation, [PROVIDER]: provider, [POOL]: pool, [NODE]: nodeId };
}

export function imageMetadata(tag: ImageTag): Metadata {
  return {
    [INSTALLATION]: tag.installation,
    [PROVIDER]: tag.provider,
    [IMAGE]: tag.image,
    [BUILD]: tag.buildId,
    [UPLOAD]: tag.uploadId,
  };
}

/** Null unless all of the tag is there: what a Python launcher made has no installation, and is not ours to delete. */
export function tagOf(metadata: Metadata): Tag | null {
  const installation = metadata[INSTALLATION];
  const provider = metadata[PROVIDER];
  const pool = metadata[POOL];
  const nodeId = metadata[NODE];
  if (installation === undefined || provider === undefined || pool === undefined || nodeId === undefined)
    return null;
  return /^\d{10}$/.test(nodeId) ? { installation, provider, pool, nodeId } : null;
}

export function imageTagOf(metadata: Metadata): ImageTag | null {
  const installation = metadata[INSTALLATION];
  const provider = metadata[PROVIDER];
  const image = metadata[IMAGE];
  const buildId = metadata[BUILD];
  const uploadId = metadata[UPLOAD];
  if (installation === undefined || provider === undefined || image === undefined) return null;
  if (buildId === undefined || uploadId === undefined || !/^\d{10}$/.test(uploadId)) return null;
  return { installation, provider, image, buildId, uploadId };
}

export function sameTag(a: Tag, b: Tag): boolean {
  return (
    a.installation === b.installation &&
    a.provider === b.provider &&
    a.pool === b.pool &&
    a.nodeId === b.nodeId
  );
}

export function sameImage(a: ImageTag, b: ImageTag): boolean {
  return (
    a.installation === b.installation &&
    a.provider === b.provider &&
    a.image === b.image &&
    a.buildId === b.buildId &&
    a.uploadId === b.uploadId
  );
}
