import type { ImageTag } from "@nodeyard/driver";

/** An image as the cloud has it. */
export interface StoredImage {
  readonly id: string;
  readonly name: string;
  readonly tag: ImageTag;
  readonly format: string;
  readonly metadata: Readonly<Record<string, string>>;
}

/** A folder that stands for a cloud's image service; only the edge has one. */
export interface ImageFolder {
  list(): Promise<readonly StoredImage[]>;
  /** Copies the file; whole or not at all. Resolves with the copy's sha256. */
  put(
    image: StoredImage,
    file: string,
    progress: (sent: number) => void,
    signal: AbortSignal,
  ): Promise<string>;
  /** Gone already: ends normally. */
  remove(id: string): Promise<void>;
}
