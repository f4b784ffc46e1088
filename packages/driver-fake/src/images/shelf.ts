import type { ImageTag, UploadOrder } from "@nodeyard/driver";

/** An image as it lies there. */
export interface ShelfImage {
  readonly id: string;
  /** Null for images that others uploaded. */
  readonly tag: ImageTag | null;
  /** Whether its data have come: it is usable then. */
  readonly whole: boolean;
}

export type NewShelfImage = Pick<UploadOrder, "tag" | "name" | "format" | "metadata">;

/** Where a fake cloud has its images. */
export interface Shelf {
  /** Whether the cloud lists them together with its machines. */
  readonly inCloud: boolean;
  list(signal: AbortSignal): Promise<readonly ShelfImage[]>;
  /** What a list does not show yet is found, too. */
  get(id: string, signal: AbortSignal): Promise<ShelfImage | undefined>;
  /** Without data; the one that the tag has already, if there is one. */
  create(image: NewShelfImage, signal: AbortSignal): Promise<ShelfImage>;
  /** With its data, whole or not at all. */
  fill(id: string, order: UploadOrder, signal: AbortSignal): Promise<void>;
  delete(id: string, signal: AbortSignal): Promise<void>;
  /** For how long a list may lag behind, milliseconds. */
  lagMs(): number;
}
