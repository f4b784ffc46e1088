import type { ImageTag } from "@nodeyard/driver";

/** An image as the cloud has it. */
export interface StoredImage {
  readonly id: string;
  readonly name: string;
  readonly tag: ImageTag;
  readonly format: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Whether its copy is there as the builder made it. */
  readonly whole: boolean;
}

/** A folder that stands for a cloud's image service; only the edge has one. */
export interface ImageFolder {
  list(): Promise<readonly StoredImage[]>;
  /** What there is to know of an image; replaced whole. */
  put(image: StoredImage): Promise<void>;
  /** Copies the file of an image. Resolves with the copy's sha256. */
  copy(id: string, file: string, progress: (sent: number) => void, signal: AbortSignal): Promise<string>;
  /** Gone already: ends normally. */
  remove(id: string): Promise<void>;
}
