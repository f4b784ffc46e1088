import { about, cloudId, listOf, maybe, objectOf, type Shaped, type Type, text, texts } from "./fields.ts";

const slot: Type<number | null> = (z) => z.int().nullable();

/** Records that are no row, since they cannot be read. */
export const skippedRecords = about(
  listOf(objectOf({ path: text, why: text })),
  "records that cannot be read",
);

/** What the tree has of a provider, as `nodeyard info --json` prints it and REST answers. Keys are never renamed. */
export const providerRecordsShape = {
  // By image, then by build.
  images: listOf(objectOf({ image: text, build: text, uploads: texts })),
  nodes: listOf(objectOf({ id: text, server_id: cloudId, backing_node: maybe, slot })),
  // An erase does not touch them.
  backing_nodes: about(
    listOf(objectOf({ id: text, provider: maybe, state: text })),
    "of other providers, with slots of this one",
  ),
  served_by: about(texts, "hosts of the launchers that serve it, or still delete its nodes"),
  unreadable: about(
    texts,
    "nodes that may belong to it; until they are repaired or removed, its leak sweeps delete nothing",
  ),
  skipped: skippedRecords,
};
/** What has these keys. */
export type ProviderRecords = Shaped<typeof providerRecordsShape>;
