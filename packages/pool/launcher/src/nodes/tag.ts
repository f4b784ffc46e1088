import type { Tag } from "@nodeyard/driver";
import type { NodeRecord } from "@nodeyard/model";

/**
 * The tag by which a machine is found again: in the cloud it is the only link to its record. `id` is the node's: a record that was just
 * made does not know it.
 */
export function tagOf(
  { installation }: { readonly installation: string },
  { id, record }: { readonly id: string; readonly record: Pick<NodeRecord, "provider" | "pool"> },
): Tag {
  return { installation, provider: record.provider ?? "", pool: record.pool ?? "", nodeId: id };
}
