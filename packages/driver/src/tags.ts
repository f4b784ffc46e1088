/** Names a resource as ours: put on it when it is made, found by it afterwards. */
export interface Tag {
  readonly installation: string;
  readonly provider: string;
  readonly pool: string;
  /** Ten digits. */
  readonly nodeId: string;
}

/** A cloud's own name of a machine: a string, or an object where one string is not enough. */
export type ExternalId = string | { readonly [key: string]: unknown };

/** Names an image in the cloud as ours: put on it when it is uploaded, found by it afterwards. */
export interface ImageTag {
  readonly installation: string;
  readonly provider: string;
  readonly image: string;
  readonly buildId: string;
  /** Ten digits. */
  readonly uploadId: string;
}

// The old names, so that what Nodepool made is read, and the installation, which it had not.
const NODE = "nodepool_node_id";
const POOL = "nodepool_pool_name";
const PROVIDER = "nodepool_provider_name";
const BUILD = "nodepool_build_id";
const UPLOAD = "nodepool_upload_id";
const INSTALLATION = "nodeyard_installation";
const IMAGE = "nodeyard_image";

/** Text by name, stored with every thing made: whose it is, and for which node or upload. */
export type Metadata = Readonly<Record<string, string>>;

/** The tag as what a cloud stores beside a machine (docs/contract/drivers.md, "Tags"). */
export function machineMetadata({ installation, provider, pool, nodeId }: Tag): Metadata {
  return { [NODE]: nodeId, [POOL]: pool, [PROVIDER]: provider, [INSTALLATION]: installation };
}

/** The same for an image. */
export function imageMetadata(tag: ImageTag): Metadata {
  return {
    [BUILD]: tag.buildId,
    [UPLOAD]: tag.uploadId,
    [PROVIDER]: tag.provider,
    [IMAGE]: tag.image,
    [INSTALLATION]: tag.installation,
  };
}

/** Null unless all of the tag is there: what a Python launcher made has no installation, and is not ours to delete. */
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

/** The same of an image. */
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

/** What a Python launcher made for this node: it has the two old keys, and nobody's installation. */
export function isOlder(metadata: Metadata, { provider, nodeId }: Tag): boolean {
  return metadata[INSTALLATION] === undefined && metadata[NODE] === nodeId && metadata[PROVIDER] === provider;
}

/** Null is nobody's. A pool may change its name; installation, provider and node do not. */
export function sameNode(a: Tag | null, b: Tag): boolean {
  return (
    a !== null && a.installation === b.installation && a.provider === b.provider && a.nodeId === b.nodeId
  );
}

/** Whether both name the same upload. */
export function sameImage(a: ImageTag, b: ImageTag): boolean {
  return (
    a.installation === b.installation &&
    a.provider === b.provider &&
    a.image === b.image &&
    a.buildId === b.buildId &&
    a.uploadId === b.uploadId
  );
}

/** Ids of nodes and uploads are the ten digits of a sequential znode. */
const NUMBER = /^\d{10}$/;

function reader(metadata: Readonly<Record<string, unknown>>): (key: string) => string {
  return (key) => {
    const value = metadata[key];
    return typeof value === "string" ? value : "";
  };
}

function whole(tag: Tag | ImageTag): boolean {
  return !Object.values(tag).includes("");
}
