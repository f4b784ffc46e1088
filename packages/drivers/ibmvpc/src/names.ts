import {
  hashOf,
  type ImageTag,
  type Metadata,
  machineMetadata,
  machineName,
  type Tag,
  tagOf,
} from "@nodeyard/driver";

/** What carries a tag in its name: IBM takes none of users with the calls that make machines, addresses and images, and names are unique in a region. */
export interface Named {
  readonly id: string;
  readonly name: string;
  readonly resource_group?: { readonly name?: string };
}

/** A boot volume, and the machines that it is attached to. */
export interface Volume extends Named {
  readonly volume_attachments?: readonly { readonly instance?: { readonly id?: string } }[];
}

/** A machine, as far as the driver reads it. */
export interface Instance extends Named {
  readonly status: string;
  readonly status_reasons?: readonly { readonly code?: string; readonly message?: string }[];
  readonly zone: { readonly name: string };
  readonly vcpu?: { readonly count?: number };
  /** GiB. */
  readonly memory?: number;
  readonly primary_network_interface?: {
    readonly id: string;
    readonly primary_ip?: { readonly address?: string };
  };
  readonly boot_volume_attachment?: { readonly volume?: { readonly id?: string } };
}

/** A floating IP, as far as the driver reads it. */
export interface FloatingIp extends Named {
  readonly address: string;
  readonly status: string;
  readonly zone: { readonly name: string };
  /** What it is attached to; the address of a network interface has that of its machine. */
  readonly target?: { readonly id?: string; readonly href?: string };
}

const NODE = /^np(\d{10})(?:-([0-9a-f]{10}))?$/;
const FREE = /^npfree-([0-9a-f]{10})-(\d{10})-([0-9a-z]+)$/;
const IMAGE = /^npimage-(\d{10})-([0-9a-z]+)-([0-9a-f]{10})-([0-9a-f]{6})(\..*)?$/;
/** Digits of a build id in base 36, of which a name has less than the 32 in base 16. */
const BUILD_DIGITS = 25;

/**
 * Names of what a provider makes. Each says for which node or upload it was made, and by a hash for which installation and provider; the
 * resource group says the pool. Nodepool's names have no hash, and count in the provider's resource groups alone.
 */
export class Names {
  readonly #of: Pick<Tag, "installation" | "provider">;
  readonly #owner: string;
  readonly #images: ReadonlyMap<string, string>;

  /** `images`: the diskimages that the provider lists. */
  constructor(installation: string, provider: string, images: Iterable<string>) {
    this.#of = { installation, provider };
    this.#owner = machineName({ ...this.#of, pool: "", nodeId: "" }).slice("np-".length);
    this.#images = new Map([...images].map((image) => [keyOf(image), image]));
  }

  /** Resource group of a pool's machines; null: of the images. */
  group(pool: string | null): string {
    return pool === null ? `npimages_${this.#of.provider}` : `np_${this.#of.provider}_${pool}`;
  }

  metadataOf({ name, resource_group: group }: Pick<Named, "name" | "resource_group">): Metadata {
    const [, nodeId, owner] = NODE.exec(name) ?? [];
    const prefix = this.group("");
    const isIn = group?.name?.startsWith(prefix) === true;
    if (nodeId === undefined || (owner === undefined ? !isIn : owner !== this.#owner)) return {};
    const pool = isIn ? group!.name!.slice(prefix.length) : "unknown";
    const { nodeyard_installation: _, ...older } = machineMetadata({ ...this.#of, pool, nodeId });
    return owner === undefined ? older : machineMetadata({ ...this.#of, pool, nodeId });
  }

  /** The name of an address that no node has, since a time (wall time, milliseconds). */
  free(nodeId: string, since: number): string {
    return `npfree-${this.#owner}-${nodeId}-${Math.floor(since / 1_000).toString(36)}`;
  }

  /** The last node of such an address, and since when; undefined: it is none. */
  freeIn({ name, ...one }: Named): { readonly tag: Tag | null; readonly since: number } | undefined {
    const [, owner, nodeId, since] = FREE.exec(name) ?? [];
    if (since === undefined || owner !== this.#owner) return undefined;
    const tag = tagOf(this.metadataOf({ ...one, name: `np${nodeId}-${owner}` }));
    return { tag, since: Number.parseInt(since, 36) * 1_000 };
  }

  /** Of an image, and of its file in the bucket. Nodepool takes `npimage` with digits for leaks of its own. */
  image({ uploadId, buildId, image }: ImageTag): string {
    const isHex = /^[0-9a-f]{32}$/.test(buildId);
    const build = isHex ? BigInt(`0x${buildId}`).toString(36).padStart(BUILD_DIGITS, "0") : buildId;
    return `npimage-${uploadId}-${build}-${this.#owner}-${keyOf(image)}`;
  }

  /** The tag in the name of an image or of a file; null: it is no upload of this installation and provider. */
  imageTag(name: string): ImageTag | null {
    const [, uploadId, build, owner, key] = IMAGE.exec(name) ?? [];
    if (uploadId === undefined || build === undefined || owner !== this.#owner) return null;
    const buildId = build.length === BUILD_DIGITS ? hexOf(build) : build;
    return { ...this.#of, image: this.#images.get(key!) ?? `#${key}`, buildId, uploadId };
  }
}

/** A diskimage in a name. One that the file does not have any more is known by this alone. */
function keyOf(image: string): string {
  return image.startsWith("#") ? image.slice(1) : hashOf(image).slice(0, 6);
}

function hexOf(base36: string): string {
  const number = [...base36].reduce((sum, digit) => sum * 36n + BigInt(Number.parseInt(digit, 36)), 0n);
  return number.toString(16).padStart(32, "0");
}
