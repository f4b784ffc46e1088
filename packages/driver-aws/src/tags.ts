import { createHash } from "node:crypto";
import type { Tag as AwsTag } from "@aws-sdk/client-ec2";
import type { Metadata, Tag } from "@nodeyard/driver";

/** The tags of a resource by key. */
export function metadataOf(tags: readonly AwsTag[] | undefined): Metadata {
  return Object.fromEntries((tags ?? []).map(({ Key, Value }) => [Key ?? "", Value ?? ""]));
}

/** The same as AWS takes them. */
export function tagListOf(metadata: Metadata): AwsTag[] {
  return Object.entries(metadata).map(([Key, Value]) => ({ Key, Value }));
}

/** One text per node. */
export function tagKey({ installation, provider, nodeId }: Tag): string {
  return JSON.stringify([installation, provider, nodeId]);
}

/**
 * The client token of a call that makes something for a node: the same text, and so the same machine, for whoever calls again after a crash
 * (EC2 User Guide, "Ensuring idempotency"). `serial`: from 1; another machine for the same node has another.
 */
export function clientToken(tag: Tag, what: "instance" | "host", serial: number): string {
  return createHash("sha256")
    .update(JSON.stringify([tagKey(tag), what, serial]))
    .digest("hex");
}
