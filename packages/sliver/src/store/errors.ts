import { NodeyardError } from "@nodeyard/runtime";

/** The store is of another node: a copied disk, or the wrong folder. */
export class ForeignStoreError extends NodeyardError {
  constructor(found: string, here: string) {
    super(
      "sliver.store_foreign",
      `the store is of node ${JSON.stringify(found)}, this is ${JSON.stringify(here)}; remove it, or name the right folder`,
    );
  }
}

/** The store was written by a later version of this program. */
export class NewerStoreError extends NodeyardError {
  constructor(schema: number, ours: number) {
    super(
      "sliver.store_newer",
      `the store has schema ${schema}, this program reads ${ours}; start the version that wrote it`,
    );
  }
}

/** The change may not be on disk, so it was not acknowledged. */
export class StoreWriteError extends NodeyardError {
  constructor(message: string, options: { readonly cause: unknown }) {
    super("sliver.store_write", message, options);
  }
}
