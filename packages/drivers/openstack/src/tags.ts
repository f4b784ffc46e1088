import { DriverError, type Tag } from "@nodeyard/driver";

/** First part of a mark, which tells it from descriptions that people write. */
const MARK = "nodeyard";
/** Longest `description` of neutron, in characters. */
const LONGEST_MARK = 255;

/**
 * The tag as one text, for resources without metadata: the `description` of a floating IP. Parts are percent-encoded, so a slash
 * in a name does not split it. Throws kind "configuration" when it is longer than neutron allows: a truncated mark would name
 * another node or none.
 */
export function markOf({ installation, provider, pool, nodeId }: Tag): string {
  const mark = [MARK, installation, provider, pool, nodeId].map(encodeURIComponent).join("/");
  if (mark.length <= LONGEST_MARK) return mark;
  throw new DriverError(
    "configuration",
    `the names of provider ${provider} and pool ${pool} are too long to mark a floating IP with; shorten them`,
  );
}

/** Reads a mark; null for any other text, also one with parts that are no valid percent-encoding. */
export function tagOfMark(mark: string | null | undefined): Tag | null {
  const parts = (mark ?? "").split("/");
  if (parts.length !== 5 || parts[0] !== MARK) return null;
  try {
    const [, installation, provider, pool, nodeId] = parts.map(decodeURIComponent);
    if (!installation || !provider || !pool || !nodeId) return null;
    return { installation, provider, pool, nodeId };
  } catch {
    return null;
  }
}
