import { type ImageTag, sameImage } from "@nodeyard/driver";

/** An image of the cloud. */
export interface FakeImage {
  readonly id: string;
  readonly name: string;
  /** Null for images that other programs uploaded. */
  readonly tag: ImageTag | null;
  /** Bytes received so far. The image can be used when `whole` is true. */
  readonly size: number;
  readonly sha256: string;
  readonly whole: boolean;
  /** Wall time, milliseconds. */
  readonly createdAt: number;
  /** Lag of lists for this image, milliseconds. */
  readonly lagMs: number;
}

/** A journal line about images. */
export type ImageEvent =
  | { readonly op: "image"; readonly at: number; readonly image: FakeImage }
  | { readonly op: "image-data"; readonly id: string; readonly size: number; readonly sha256: string }
  | { readonly op: "image-delete"; readonly at: number; readonly id: string };

/** The images of a cloud, computed from its events. A tag has at most one image: the first in the journal. */
export class Images {
  readonly #byId = new Map<string, { image: FakeImage; goneAt: number | undefined }>();

  /** Applies an event. One for an image that does not exist, or no longer, has no effect: two processes may both delete it. */
  apply(event: ImageEvent): void {
    if (event.op === "image") {
      const { image } = event;
      const known = this.#byId.has(image.id) || (image.tag !== null && this.ofTag(image.tag) !== undefined);
      if (!known) this.#byId.set(image.id, { image, goneAt: undefined });
      return;
    }
    const entry = this.#byId.get(event.id);
    if (entry === undefined || entry.goneAt !== undefined) return;
    if (event.op === "image-delete") entry.goneAt = event.at;
    else entry.image = { ...entry.image, size: event.size, sha256: event.sha256, whole: true };
  }

  /** Strongly consistent, as a read by id is. */
  get(id: string): FakeImage | undefined {
    const entry = this.#byId.get(id);
    return entry === undefined || entry.goneAt !== undefined ? undefined : entry.image;
  }

  /** The tag's image, without lag; undefined when there is none. Looks at all images. */
  ofTag(tag: ImageTag): FakeImage | undefined {
    return this.live().find((image) => image.tag !== null && sameImage(image.tag, tag));
  }

  live(): readonly FakeImage[] {
    return [...this.#byId.values()].flatMap(({ image, goneAt }) => (goneAt === undefined ? [image] : []));
  }

  /** The list at `now`. Each image appears and disappears with its lag. Drops deleted ones that no list can show any more. */
  listed(now: number): readonly FakeImage[] {
    const shown: FakeImage[] = [];
    for (const [id, { image, goneAt }] of this.#byId) {
      if (goneAt !== undefined && now >= goneAt + image.lagMs) this.#byId.delete(id);
      else if (now >= image.createdAt + image.lagMs) shown.push(image);
    }
    return shown;
  }
}
