import type { Clock, ExternalId, OpenFile, UploadOrder } from "@nodeyard/driver";
import { type Aws, codeOf } from "../client/index.ts";
import type { AwsProviderConfig } from "../config.ts";
import type { AwsDiskimage } from "../config-table.ts";

/** For one call or a few, milliseconds. */
export const CALL_MS = 120_000;

/** What uploads of one provider need. */
export interface ImageParts {
  readonly aws: Aws;
  readonly region: string;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  /** The format of uploads: a provider has one. */
  readonly format: string;
  /** Null: without one only ebs-direct works. */
  readonly bucket: string | null;
  /** What the provider says of its diskimages, by name. */
  readonly diskimages: ReadonlyMap<string, AwsDiskimage>;
  /** How long an import may wait for its turn, or an upload by EBS direct take, milliseconds; null: not at all, and as long as any. */
  readonly importMs: number | null;
}

/** Of a provider as its configuration has it. */
export function uploadsOf(
  { own }: Pick<AwsProviderConfig, "own">,
  aws: Aws,
  clock: Clock,
  openFile: OpenFile,
): ImageParts {
  const { bucket, diskimages, imageFormat, imageImportTimeoutMs } = own;
  return {
    ...{ aws, clock, openFile, bucket, diskimages },
    region: own.region ?? "",
    format: imageFormat ?? "raw",
    importMs: imageImportTimeoutMs,
  };
}

/** One upload while it runs. */
export interface Upload extends ImageParts {
  readonly order: UploadOrder;
  readonly own: AwsDiskimage;
  readonly signal: AbortSignal;
  /** What was stored last, by this process or by one before it. */
  readonly externalId: ExternalId | null;
  /** What is left of the upload's time, milliseconds. */
  left(): number;
}

/** The provider's region, and those that its images are copied to, by name. */
export function places({ aws, region, diskimages }: ImageParts): ReadonlyMap<string, Aws> {
  const others = [...diskimages.values()].flatMap(({ copyTo }) => copyTo);
  return new Map([[region, aws], ...others.map((name) => [name, aws.in(name)] as const)]);
}

export async function deregister(aws: Aws, ImageId: string, signal: AbortSignal): Promise<void> {
  await aws.ec2((ec2, to) => ec2.deregisterImage({ ImageId }, to), signal).catch(unlessGone);
}

export async function deleteSnapshot(aws: Aws, SnapshotId: string, signal: AbortSignal): Promise<void> {
  await aws.ec2((ec2, to) => ec2.deleteSnapshot({ SnapshotId }, to), signal).catch(unlessGone);
}

/** Images, snapshots, objects and multipart uploads that are not there, as each service says it. */
export function isGone(error: unknown): boolean {
  return /^(Invalid\w+\.(NotFound|Unavailable)|NoSuch\w+|NotFound|ResourceNotFoundException)$/.test(
    codeOf(error),
  );
}

/** For deletions: what is gone is as good as deleted. */
export function unlessGone(error: unknown): void {
  if (!isGone(error)) throw error;
}
