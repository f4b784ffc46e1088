import type { Tag } from "./contract.ts";
import type { ImageTag } from "./offers.ts";

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
