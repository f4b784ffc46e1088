import {
  type Clock,
  hashOf,
  type ImageTag,
  imageMetadata,
  type Metadata,
  type OpenFile,
  type UploadOrder,
} from "@nodeyard/driver";
import type { Aws } from "../client/index.ts";
import type { AwsProviderOwn } from "../config.ts";
import type { AwsDiskimage } from "../config-table.ts";

/** Dependencies and settings of one provider's uploads. */
export interface ImageParts {
  readonly aws: Aws;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  readonly settings: AwsProviderOwn;
  readonly owner: Pick<ImageTag, "installation" | "provider">;
}

/** One running upload. */
export interface Upload extends ImageParts {
  readonly order: UploadOrder;
  /** Settings of the image that is uploaded. */
  readonly own: AwsDiskimage;
}

/** Milliseconds for one upload, for its import, and for each copy of its AMI. */
export const UPLOAD_MS = 6 * 3_600_000;
/** Pause between two looks at an AMI that is being made, milliseconds. */
export const POLL_MS = 5_000;

/** Tags of every resource of an upload. The tag wins over the image's metadata. */
export function uploadMetadata({ metadata, tag }: UploadOrder): Metadata {
  return { ...metadata, ...imageMetadata(tag) };
}

/** Client token of a call for an upload. A repetition after a crash has the same token, so EC2 does not make a second resource. */
export function uploadToken(tag: ImageTag, ...what: readonly string[]): string {
  return hashOf([imageMetadata(tag), ...what]);
}
