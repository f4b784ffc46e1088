/** A subvolume and the one it is a copy of. */
export interface ListedSubvolume {
  readonly id: number;
  /** Relative to the top of the file system. */
  readonly path: string;
  readonly uuid: string;
  /** UUID of the subvolume that this one is a snapshot of; absent for one that was created empty. */
  readonly parent?: string;
}

/** Parses `btrfs subvolume list -u -q`: `ID 258 gen 9 top level 5 parent_uuid UUID|- uuid UUID path images/x`. */
export function readSubvolumes(text: string): ListedSubvolume[] {
  return text.split("\n").flatMap((line) => {
    const [, id, parent, uuid, path] =
      /^ID (\d+) .* parent_uuid (\S+) +uuid (\S+) path (.+)$/.exec(line) ?? [];
    if (parent === undefined || uuid === undefined || path === undefined) return [];
    return [{ id: Number(id), path, uuid, ...(parent === "-" ? {} : { parent }) }];
  });
}

/** Parses `btrfs qgroup show --raw`: bytes of all data that a subvolume refers to, and of its own, by its number. */
export function readData(text: string): Map<number, { readonly all: number; readonly own: number }> {
  return new Map(
    [...text.matchAll(/^ *0\/(\d+)\s+(\d+)\s+(\d+)/gm)].map(([, id, all, own]) => [
      Number(id),
      { all: Number(all), own: Number(own) },
    ]),
  );
}

/** Digests of images that have copies. Removing such an image frees nothing: the copies share its blocks. */
export function imagesInUse(all: readonly Omit<ListedSubvolume, "id">[]): Set<string> {
  const parents = new Set(all.map(({ parent }) => parent));
  return new Set(
    all.flatMap(({ path, uuid }) => {
      const digest = /(?:^|\/)images\/([0-9a-f]{64})$/.exec(path)?.[1];
      return digest !== undefined && parents.has(uuid) ? [digest] : [];
    }),
  );
}
