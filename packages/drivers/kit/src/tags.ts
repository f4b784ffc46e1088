import { createHash } from "node:crypto";

/** Marks a resource as one of Nodeyard's. It is set when the resource is made, and used to find it later. */
export interface Tag {
  readonly installation: string;
  readonly provider: string;
  readonly pool: string;
  /** Ten digits. */
  readonly nodeId: string;
}

/** A key for maps, unique per node. */
export function tagKey({ installation, provider, nodeId }: Tag): string {
  return JSON.stringify([installation, provider, nodeId]);
}

/** The cloud's id of a machine: a string, or an object when one string is not enough. */
export type ExternalId = string | { readonly [key: string]: unknown };

/** Marks an image in the cloud as one of Nodeyard's. It is set by the upload, and used to find the image later. */
export interface ImageTag {
  readonly installation: string;
  readonly provider: string;
  readonly image: string;
  readonly buildId: string;
  /** Ten digits. */
  readonly uploadId: string;
}

// Nodepool's keys, so that its resources can be read, and the installation, which Nodepool does not have.
const NODE = "nodepool_node_id";
const POOL = "nodepool_pool_name";
const PROVIDER = "nodepool_provider_name";
const BUILD = "nodepool_build_id";
const UPLOAD = "nodepool_upload_id";
const INSTALLATION = "nodeyard_installation";
const IMAGE = "nodeyard_image";

/** Key-value pairs that the cloud stores with each resource. They contain the tag. */
export type Metadata = Readonly<Record<string, string>>;

/** The tag as metadata of a machine (docs/contract/drivers.md, "Tags"). */
export function machineMetadata({ installation, provider, pool, nodeId }: Tag): Metadata {
  return { [NODE]: nodeId, [POOL]: pool, [PROVIDER]: provider, [INSTALLATION]: installation };
}

/**
 * A name for a node's machine that follows from the tag: the same at each attempt, so that a cloud with unique names never gets two of it, and
 * another one for each installation and provider, as several may share a project. It says whose a machine is without its metadata.
 */
export function machineName({ installation, provider, nodeId }: Tag): string {
  return `np${nodeId}-${hashOf([installation, provider]).slice(0, 10)}`;
}

/** The tag as metadata of an image. */
export function imageMetadata(tag: ImageTag): Metadata {
  return {
    [BUILD]: tag.buildId,
    [UPLOAD]: tag.uploadId,
    [PROVIDER]: tag.provider,
    [IMAGE]: tag.image,
    [INSTALLATION]: tag.installation,
  };
}

/** Null unless the tag is complete. Resources of a Python launcher have no installation, so Nodeyard must not delete them. */
export function tagOf(metadata: Readonly<Record<string, unknown>>): Tag | null {
  const text = reader(metadata);
  const tag = {
    installation: text(INSTALLATION),
    provider: text(PROVIDER),
    pool: text(POOL),
    nodeId: text(NODE),
  };
  return whole(tag) && NUMBER.test(tag.nodeId) ? tag : null;
}

/** The same for an image. */
export function imageTagOf(metadata: Readonly<Record<string, unknown>>): ImageTag | null {
  const text = reader(metadata);
  const tag = {
    installation: text(INSTALLATION),
    provider: text(PROVIDER),
    image: text(IMAGE),
    buildId: text(BUILD),
    uploadId: text(UPLOAD),
  };
  return whole(tag) && NUMBER.test(tag.uploadId) ? tag : null;
}

/** Whether a Python launcher made the resource for this node: it has Nodepool's keys but no installation. */
export function isOlder(metadata: Metadata, { provider, nodeId }: Tag): boolean {
  return metadata[INSTALLATION] === undefined && metadata[NODE] === nodeId && metadata[PROVIDER] === provider;
}

/** Whether metadata that are not complete still name another node. */
export function namesOther(metadata: Metadata, { nodeId }: Tag): boolean {
  return (metadata[NODE] ?? nodeId) !== nodeId;
}

/** Whether both tags name the same node. Pools may be renamed, so only installation, provider and node are compared. */
export function sameNode(a: Tag | null, b: Tag): boolean {
  return (
    a !== null && a.installation === b.installation && a.provider === b.provider && a.nodeId === b.nodeId
  );
}

/** Whether both tags name the same upload. */
export function sameImage(a: ImageTag, b: ImageTag): boolean {
  return (
    a.installation === b.installation &&
    a.provider === b.provider &&
    a.image === b.image &&
    a.buildId === b.buildId &&
    a.uploadId === b.uploadId
  );
}

/** Whether metadata of an image have the tag of this upload. */
export function isOfUpload(metadata: Readonly<Record<string, unknown>>, tag: ImageTag): boolean {
  const found = imageTagOf(metadata);
  return found !== null && sameImage(found, tag);
}

/** Hex digits that stand for a value, for names and tokens that have to be the same at each attempt. */
export function hashOf(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex");
}

/** Ids of nodes and uploads are the ten digits of a sequential znode. */
const NUMBER = /^\d{10}$/;

/** Reads a key as text; empty when it is missing or no text, as clouds return other types for keys of others. */
function reader(metadata: Readonly<Record<string, unknown>>): (key: string) => string {
  return (key) => {
    const value = metadata[key];
    return typeof value === "string" ? value : "";
  };
}

function whole(tag: Tag | ImageTag): boolean {
  return !Object.values(tag).includes("");
}
