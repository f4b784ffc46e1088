import type { Tag as AwsTag, Filter, Image, Snapshot } from "@aws-sdk/client-ec2";
import {
  type Clock,
  type ExternalId,
  imageMetadata,
  isOfUpload,
  type OpenFile,
  type UploadOrder,
} from "@nodeyard/driver";
import type { Aws } from "../client/index.ts";
import type { AwsProviderOwn } from "../config.ts";
import type { AwsDiskimage } from "../config-table.ts";
import { metadataOf } from "../tags.ts";

/** Dependencies and settings of one provider's uploads. */
export interface ImageParts {
  readonly aws: Aws;
  readonly clock: Clock;
  readonly openFile: OpenFile;
  readonly settings: AwsProviderOwn;
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
  { aws, settings }: ImageParts,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Aws>> {
  const region = await aws.region(signal);
  const copies = [...settings.diskimages.values()].flatMap(({ copyTo }) => copyTo);
  const others = copies.filter((name) => name !== region);
  return new Map([[region, aws], ...others.map((name) => [name, aws.in(name)] as const)]);
}

/** AMIs of this account in one region. Ids are filters, too: a request by ids fails when one of them does not exist. */
export function listImages(aws: Aws, Filters: Filter[], signal: AbortSignal): Promise<readonly Image[]> {
  return aws.list("ec2.describeImages", "Images", { Owners: ["self"], Filters }, signal);
}

/** The same of snapshots. */
export function listSnapshots(
  aws: Aws,
  Filters: Filter[],
  signal: AbortSignal,
): Promise<readonly Snapshot[]> {
  return aws.list("ec2.describeSnapshots", "Snapshots", { OwnerIds: ["self"], Filters }, signal);
}

/** What `list` finds of an upload. */
export async function ofUpload<T extends { readonly Tags?: AwsTag[] | undefined }>(
  { aws, order: { tag }, signal }: Upload,
  list: (aws: Aws, Filters: Filter[], signal: AbortSignal) => Promise<readonly T[]>,
): Promise<readonly T[]> {
  const { nodepool_upload_id = "", nodeyard_installation = "" } = imageMetadata(tag);
  // Filters for two parts of the tag. The others are compared here.
  const by = Object.entries({ nodepool_upload_id, nodeyard_installation });
  const filters = by.map(([key, value]) => ({ Name: `tag:${key}`, Values: [value] }));
  const found = await list(aws, filters, signal);
  return found.filter(({ Tags }) => isOfUpload(metadataOf(Tags), tag));
}
