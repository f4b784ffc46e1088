import { createReadStream, fstatSync, openSync } from "node:fs";
import type { Backup } from "@nodeyard/api";
import type { EmbeddedTree } from "@nodeyard/tree";
import { discard } from "./files.ts";

/**
 * Makes copies of the tree that this process holds, one at a time, and removes the temporary file of each as soon as it is open:
 * the stream keeps its bytes until it ends, and a process that is killed leaves none.
 */
export function backupsOf(tree: EmbeddedTree, folder: string): () => Promise<Backup> {
  let last: Promise<unknown> = Promise.resolve();
  const copy = async () => {
    const path = `${folder}/backup.sqlite`;
    await tree.backup(path);
    try {
      const fd = openSync(path, "r");
      return { bytes: fstatSync(fd).size, stream: createReadStream(path, { fd }) };
    } finally {
      discard(path);
    }
  };
  return () => {
    const made = last.then(copy);
    last = made.catch(() => {});
    return made;
  };
}
