import type { ImageTag, Tag } from "@nodeyard/driver";

/** The folder's name is the whole tag, so that creating it also tags it. The encoded parts contain no comma, slash or leading dot. */
export function nodeName({ installation, provider, pool, nodeId }: Tag): string {
  return join([installation, provider, pool, nodeId]);
}

/** Null for a folder that Nodeyard did not make. */
export function nodeTag(name: string): Tag | null {
  const [installation, provider, pool, nodeId, ...more] = split(name);
  if (installation === undefined || provider === undefined || pool === undefined || nodeId === undefined)
    return null;
  return more.length === 0 && /^\d{10}$/.test(nodeId) ? { installation, provider, pool, nodeId } : null;
}

/** The name of an upload's folder: its whole tag, as for machines. */
export function imageName({ installation, provider, image, buildId, uploadId }: ImageTag): string {
  return join([installation, provider, image, buildId, uploadId]);
}

/** The tag in a name; null for a folder that Nodeyard did not make. */
export function imageTag(name: string): ImageTag | null {
  const [installation, provider, image, buildId, uploadId, ...more] = split(name);
  if (installation === undefined || provider === undefined || image === undefined) return null;
  if (buildId === undefined || uploadId === undefined || more.length > 0) return null;
  return { installation, provider, image, buildId, uploadId };
}

/** Encoded parts with commas in between. A leading dot is encoded too, because such names are drafts (`tidy`). */
function join(parts: readonly string[]): string {
  return parts.map((part) => encodeURIComponent(part).replace(/^\./, "%2E")).join(",");
}

/** The parts of a name, decoded; empty for drafts and for names of others. */
function split(name: string): readonly string[] {
  try {
    return name.startsWith(".") ? [] : name.split(",").map(decodeURIComponent);
  } catch {
    // A % without two hexadecimal digits does not occur in names that this driver makes.
    return [];
  }
}
