import { DriverError, type ImageTag, type Tag } from "@nodeyard/driver";
import type { Server } from "./api/compute.ts";
import type { Image } from "./api/image.ts";

/** Keys that every Nodepool puts on a server (spec drivers-clouds-1.md 1.5), and ours. */
const NODE = "nodepool_node_id";
const POOL = "nodepool_pool_name";
const PROVIDER = "nodepool_provider_name";
const BUILD = "nodepool_build_id";
const UPLOAD = "nodepool_upload_id";
const INSTALLATION = "nodeyard_installation";
const IMAGE = "nodeyard_image";

export function tagMetadata(tag: Tag): Readonly<Record<string, string>> {
  return {
    [NODE]: tag.nodeId,
    [POOL]: tag.pool,
    [PROVIDER]: tag.provider,
    [INSTALLATION]: tag.installation,
  };
}

/** Null where it carries no tag, or not all of it: a Python launcher's has no installation. */
export function serverTag({ metadata }: Pick<Server, "metadata">): Tag | null {
  const { [NODE]: nodeId, [POOL]: pool, [PROVIDER]: provider, [INSTALLATION]: installation } = metadata;
  if (!nodeId || !pool || !provider || !installation) return null;
  return { installation, provider, pool, nodeId };
}

/** A server that a Python launcher made for this node: it has the two old keys, and nobody's installation. */
export function isOlder({ metadata }: Pick<Server, "metadata">, tag: Tag): boolean {
  return (
    metadata[INSTALLATION] === undefined &&
    metadata[NODE] === tag.nodeId &&
    metadata[PROVIDER] === tag.provider
  );
}

/** A pool may change its name; installation, provider and node do not. */
export function sameNode(a: Tag | null, b: Tag): boolean {
  return (
    a !== null && a.installation === b.installation && a.provider === b.provider && a.nodeId === b.nodeId
  );
}

export function tagKey({ installation, provider, nodeId }: Tag): string {
  return JSON.stringify([installation, provider, nodeId]);
}

const MARK = "nodeyard";
/** neutron's `description` holds this many characters. */
const LONGEST_MARK = 255;

/** The tag as one text, for what has no metadata: the `description` of a floating IP. */
export function markOf({ installation, provider, pool, nodeId }: Tag): string {
  const mark = [MARK, installation, provider, pool, nodeId].map(encodeURIComponent).join("/");
  if (mark.length <= LONGEST_MARK) return mark;
  throw new DriverError(
    "configuration",
    `the names of provider ${provider} and pool ${pool} are too long to mark a floating IP with; shorten them`,
  );
}

/** Null for any other text. */
export function tagOfMark(mark: string | null | undefined): Tag | null {
  const parts = (mark ?? "").split("/");
  if (parts.length !== 5 || parts[0] !== MARK) return null;
  try {
    const [, installation, provider, pool, nodeId] = parts.map(decodeURIComponent);
    if (!installation || !provider || !pool || !nodeId) return null;
    return { installation, provider, pool, nodeId };
  } catch {
    return null;
  }
}

/** Properties of an uploaded image: the builder's old three, and ours. */
export function imageProperties(tag: ImageTag): Readonly<Record<string, string>> {
  return {
    [BUILD]: tag.buildId,
    [UPLOAD]: tag.uploadId,
    [PROVIDER]: tag.provider,
    [IMAGE]: tag.image,
    [INSTALLATION]: tag.installation,
  };
}

export function imageTag(image: Image): ImageTag | null {
  const text = (key: string) => (typeof image[key] === "string" ? image[key] : "");
  const tag = {
    installation: text(INSTALLATION),
    provider: text(PROVIDER),
    image: text(IMAGE),
    buildId: text(BUILD),
    uploadId: text(UPLOAD),
  };
  return Object.values(tag).includes("") ? null : tag;
}
