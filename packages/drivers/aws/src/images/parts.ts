import type { Clock, ExternalId, OpenFile, UploadOrder } from "@nodeyard/driver";
import { type Aws, codeOf } from "../client/index.ts";
import type { AwsProviderConfig } from "../config.ts";
import type { AwsDiskimage } from "../config-table.ts";

/** Milliseconds for one call or a few. */
export const CALL_MS = 120_000;

/** Dependencies and settings of one provider's uploads. */
export interface ImageParts {
  readonly aws: Aws;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  /** File format of uploads, one per provider. */
  readonly format: string;
  /** Null: only ebs-direct works. */
  readonly bucket: string | null;
  /** Settings of the provider's diskimages, by name. */
  readonly diskimages: ReadonlyMap<string, AwsDiskimage>;
  /**
   * Milliseconds that an import may wait for a free place, or that an upload through EBS direct APIs may take. Null: no wait, and no limit
   * of its own.
   */
  readonly importMs: number | null;
}

/** Uploads of a configured provider. */
export function uploadsOf(
  { own }: Pick<AwsProviderConfig, "own">,
  aws: Aws,
  clock: Clock,
  openFile: OpenFile,
): ImageParts {
  const { bucket, diskimages, imageFormat, imageImportTimeoutMs } = own;
  return {
    ...{ aws, clock, openFile, bucket, diskimages },
    format: imageFormat ?? "raw",
    importMs: imageImportTimeoutMs,
  };
}

/** One running upload. */
export interface Upload extends ImageParts {
  readonly order: UploadOrder;
  /** Settings of the image that is uploaded. */
  readonly own: AwsDiskimage;
  readonly signal: AbortSignal;
  /** The external id stored last, by this process or an earlier one. */
  readonly externalId: ExternalId | null;
  /** Milliseconds left for the upload, at least 1. Each step gets what the steps before it left. */
  left(): number;
}

/** The provider's region and the regions that its images are copied to, by name. */
export async function places(
  { aws, diskimages }: ImageParts,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Aws>> {
  const region = await aws.region(signal);
  const others = [...diskimages.values()].flatMap(({ copyTo }) => copyTo).filter((name) => name !== region);
  return new Map([[region, aws], ...others.map((name) => [name, aws.in(name)] as const)]);
}

/** Removes an AMI. Its snapshots stay. One that is gone is no error. */
export async function deregister(aws: Aws, ImageId: string, signal: AbortSignal): Promise<void> {
  await aws.ec2((ec2, to) => ec2.deregisterImage({ ImageId }, to), signal).catch(unlessGone);
}

/** One that is gone is no error. EC2 refuses while an AMI uses it (InvalidSnapshot.InUse, "transient"). */
export async function deleteSnapshot(aws: Aws, SnapshotId: string, signal: AbortSignal): Promise<void> {
  await aws.ec2((ec2, to) => ec2.deleteSnapshot({ SnapshotId }, to), signal).catch(unlessGone);
}

/** Whether the error means that an AMI, snapshot, object or multipart upload does not exist. Each service has its own codes. */
export function isGone(error: unknown): boolean {
  return /^(Invalid\w+\.(NotFound|Unavailable)|NoSuch\w+|NotFound|ResourceNotFoundException)$/.test(
    codeOf(error),
  );
}

/** For deletions: a missing resource counts as deleted. */
export function unlessGone(error: unknown): void {
  if (!isGone(error)) throw error;
}
