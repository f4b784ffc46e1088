import type { Tag as AwsTag, TagSpecification } from "@aws-sdk/client-ec2";
import { hashOf, type Metadata, type Tag, tagKey } from "@nodeyard/driver";

/** The tags of a resource by key. Empty without tags; AWS leaves the field out then. */
export function metadataOf(tags: readonly AwsTag[] | undefined): Metadata {
  return Object.fromEntries((tags ?? []).map(({ Key, Value }) => [Key ?? "", Value ?? ""]));
}

export function tagListOf(metadata: Metadata): AwsTag[] {
  return Object.entries(metadata).map(([Key, Value]) => ({ Key, Value }));
}

/** The same tags for each type of resource that a call makes, so that nothing of ours is ever untagged. */
export function tagSpecifications(
  types: readonly TagSpecification["ResourceType"][],
  metadata: Metadata,
): TagSpecification[] {
  return types.map((ResourceType) => ({ ResourceType, Tags: tagListOf(metadata) }));
}

/**
 * Client token of a call that makes a resource for a node. A repetition after a crash has the same token, so EC2 returns the machine that
 * exists already (EC2 User Guide, "Ensuring idempotency"). `serial` counts from 1: another machine for the same node needs another token.
 */
export function clientToken(tag: Tag, what: "instance" | "host", serial: number): string {
  return hashOf([tagKey(tag), what, serial]);
}
