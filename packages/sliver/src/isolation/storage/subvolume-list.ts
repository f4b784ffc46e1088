/** A subvolume, and what it is a copy of. */
export interface ListedSubvolume {
  readonly id: number;
  /** From the top of the file system. */
  readonly path: string;
  readonly uuid: string;
  /** Absent for one that was made empty. */
  readonly parent?: string;
}

/** Reads `btrfs subvolume list -u -q`: `ID 258 gen 9 top level 5 parent_uuid UUID|- uuid UUID path images/x`. */
export function readSubvolumes(text: string): ListedSubvolume[] {
  return text.split("\n").flatMap((line) => {
    const [, id, parent, uuid, path] =
      /^ID (\d+) .* parent_uuid (\S+) +uuid (\S+) path (.+)$/.exec(line) ?? [];
    if (parent === undefined || uuid === undefined || path === undefined) return [];
    return [{ id: Number(id), path, uuid, ...(parent === "-" ? {} : { parent }) }];
  });
}

/** Digests of images that something is a copy of: it shares their blocks, and would have to hold them alone without them. */
export function imagesInUse(all: readonly Omit<ListedSubvolume, "id">[]): Set<string> {
  const parents = new Set(all.map(({ parent }) => parent));
  return new Set(
    all.flatMap(({ path, uuid }) => {
      const digest = /(?:^|\/)images\/([0-9a-f]{64})$/.exec(path)?.[1];
      return digest !== undefined && parents.has(uuid) ? [digest] : [];
    }),
  );
}
