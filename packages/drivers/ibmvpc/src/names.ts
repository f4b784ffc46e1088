import { createHash } from "node:crypto";
import {
  type ImageTag,
  isOlder,
  type Metadata,
  machineMetadata,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";

/** What carries the tag: IBM's instances and addresses take no tags of users when they are made, and names are unique in a region. */
export interface Named {
  readonly id: string;
  readonly name: string;
  readonly resource_group?: { readonly name?: string };
}

const NODE = /^np(\d{10})(?:-([0-9a-f]{10}))?$/;
const FREE = /^npfree-([0-9a-f]{10})-(\d{10})-([0-9a-z]+)$/;
const IMAGE = /^npimage-(\d{10})-([0-9a-z]+)-([0-9a-f]{10})-([0-9a-f]{6})$/;
/** An image of a diskimage that the file does not have any more is known by what its name says. */
const UNKNOWN = /^#([0-9a-f]{6})$/;
/** Of a build id of 32 hexadecimal digits, in base 36. */
const BUILD_DIGITS = 25;

/**
 * Names of what a provider makes. Each says for which node or upload it was made, and by a hash for which installation and provider; the resource group says
 * the pool. Nodepool's names have no hash, and count in the provider's resource groups alone.
 */
export class Names {
  readonly #installation: string;
  readonly #provider: string;
  readonly #owner: string;
  readonly #images: ReadonlyMap<string, string>;

  /** `images`: the diskimages that the provider lists. */
  constructor(installation: string, provider: string, images: Iterable<string>) {
    this.#installation = installation;
    this.#provider = provider;
    this.#owner = hash(JSON.stringify([installation, provider])).slice(0, 10);
    this.#images = new Map([...images].map((image) => [imageKey(image), image]));
  }

  /** Of a machine, its disk and its address: the same at each attempt, so that a region never has two of them. */
  of({ nodeId }: Pick<Tag, "nodeId">): string {
    return `np${nodeId}-${this.#owner}`;
  }

  /** Resource group of a pool's machines; null: of the images. */
  group(pool: string | null): string {
    return pool === null ? `npimages_${this.#provider}` : `np_${this.#provider}_${pool}`;
  }

  metadataOf({ name, resource_group: group }: Named): Metadata {
    const [, nodeId, owner] = NODE.exec(name) ?? [];
    const [installation, provider] = [this.#installation, this.#provider];
    const prefix = this.group("");
    const isOurs = group?.name?.startsWith(prefix) === true;
    if (nodeId === undefined || (owner === undefined ? !isOurs : owner !== this.#owner)) return {};
    const pool = isOurs ? group!.name!.slice(prefix.length) : "unknown";
    const { nodeyard_installation: _, ...older } = machineMetadata({ installation, provider, pool, nodeId });
    return owner === undefined ? older : { ...older, nodeyard_installation: installation };
  }

  /** Whether something was made for a node, by Nodeyard or by Nodepool. */
  isOf(one: Named, tag: Tag): boolean {
    const metadata = this.metadataOf(one);
    return sameNode(tagOf(metadata), tag) || isOlder(metadata, tag);
  }

  /** The name of an address that no node has, since a time (wall time, milliseconds). */
  free(nodeId: string, since: number): string {
    return `npfree-${this.#owner}-${nodeId}-${Math.floor(since / 1_000).toString(36)}`;
  }

  /** Undefined: it is none of those. */
  freeIn(name: string): { readonly nodeId: string; readonly since: number } | undefined {
    const [, owner, nodeId, since] = FREE.exec(name) ?? [];
    if (nodeId === undefined || since === undefined || owner !== this.#owner) return undefined;
    return { nodeId, since: Number.parseInt(since, 36) * 1_000 };
  }

  /** The tag of what stands alone, of a node whose name is known. */
  tag(nodeId: string, { resource_group: group }: Pick<Named, "resource_group"> = {}): Tag | null {
    return tagOf(
      this.metadataOf({ id: "", name: this.of({ nodeId }), ...(group && { resource_group: group }) }),
    );
  }

  /** Of an image, and of its file in the bucket. Nodepool takes `npimage` with digits for leaks of its own. */
  image({ uploadId, buildId, image }: ImageTag): string {
    const build = /^[0-9a-f]{32}$/.test(buildId)
      ? BigInt(`0x${buildId}`).toString(36).padStart(BUILD_DIGITS, "0")
      : buildId.toLowerCase();
    return `npimage-${uploadId}-${build}-${this.#owner}-${imageKey(image)}`;
  }

  /** The tag in the name of an image or of a file; null: it is no upload of this installation and provider. */
  imageTag(name: string): ImageTag | null {
    const [, uploadId, build, owner, key] = IMAGE.exec(name.replace(/\..*$/, "")) ?? [];
    if (uploadId === undefined || build === undefined || owner !== this.#owner) return null;
    const buildId = build.length === BUILD_DIGITS ? hexOf(build) : build;
    const image = this.#images.get(key!) ?? `#${key}`;
    return { installation: this.#installation, provider: this.#provider, image, buildId, uploadId };
  }
}

function imageKey(image: string): string {
  return UNKNOWN.exec(image)?.[1] ?? hash(image).slice(0, 6);
}

function hexOf(base36: string): string {
  const number = [...base36].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n);
  return number.toString(16).padStart(32, "0");
}

function hash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
