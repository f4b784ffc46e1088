import type { Tag } from "@nodeyard/driver";

/**
 * The name of a board's folder is its whole tag: making the folder tags it in the same call, and one tag can never have two
 * folders. `encodeURIComponent` leaves no comma and no slash in the parts.
 */
export function boardName({ installation, provider, pool, nodeId }: Tag): string {
  return [installation, provider, pool, nodeId].map(encodeURIComponent).join(",");
}

/** The tag from the name; null for a folder that is not ours. */
export function tagOf(name: string): Tag | null {
  const parts = name.split(",");
  if (parts.length !== 4) return null;
  try {
    const [installation, provider, pool, nodeId] = parts.map(decodeURIComponent) as [
      string,
      string,
      string,
      string,
    ];
    return /^\d{10}$/.test(nodeId) ? { installation, provider, pool, nodeId } : null;
  } catch {
    // A stray % is in no name that we wrote.
    return null;
  }
}
