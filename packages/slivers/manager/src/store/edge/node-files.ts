import { constants } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ignoring, syncPath } from "@nodeyard/runtime";
import type { StoreFiles } from "../store.ts";

/** The files of one folder. The folder exists and only its owner may enter it. */
export function nodeFiles(folder: string): StoreFiles {
  const path = (name: string) => join(folder, name);
  return {
    read: (name) => ignoring("ENOENT", readFile(path(name))),
    /** Fails when the file exists or is a link, so the store removes an earlier draft first. */
    async create(name) {
      const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
      const handle = await open(path(name), O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600);
      return {
        write: (bytes) => handle.writeFile(bytes),
        sync: () => handle.sync(),
        close: () => handle.close(),
      };
    },
    rename: (from, to) => rename(path(from), path(to)),
    remove: (name) => rm(path(name), { force: true }),
    /** A rename is durable only after this. */
    syncFolder: () => syncPath(folder),
  };
}
