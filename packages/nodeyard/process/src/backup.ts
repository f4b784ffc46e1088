import { BACKUP_PATH } from "@nodeyard/api";
import type { Machine } from "@nodeyard/telemetry/machine";
import { openEmbeddedTree, restoreEmbeddedTree, StoreRefused } from "@nodeyard/tree";
import { fetchToFile } from "./edge/fetch-to-file.ts";
import { fileExists, isSocket, makeStateFolder } from "./edge/files.ts";
import { ProcessError } from "./errors.ts";
import { HTTP_SOCKET } from "./http-socket.ts";

/**
 * Writes a copy of a state folder's tree to `file`, whole or not at all: by the process that runs on the folder, or from its file when none
 * does. Rejects with ProcessError, StoreRefused or StoreFailed.
 */
export async function backupTree(stateFolder: string, file: string, machine: Machine): Promise<void> {
  const socket = `${stateFolder}/${HTTP_SOCKET}`;
  // False: nobody listens, so the process there was killed, and its file is free.
  if (isSocket(socket) && (await fetchToFile({ socket, path: BACKUP_PATH, file }))) return;
  if (!fileExists(`${stateFolder}/tree.sqlite`))
    throw new ProcessError(
      "process.no_tree",
      `the state folder ${stateFolder} holds no tree; name another with --state DIR`,
    );
  const tree = await openEmbeddedTree({
    folder: stateFolder,
    clock: machine.clock,
    random: machine.random,
  }).catch((error: unknown) => {
    if (!(error instanceof StoreRefused) || error.code !== "tree.store_in_use") throw error;
    throw new ProcessError(
      "process.no_backup",
      `the Nodeyard that runs on ${stateFolder} has no ${HTTP_SOCKET}, by which it is asked for a backup: run it without --no-webapp, or stop it for the backup`,
      { cause: error },
    );
  });
  try {
    await tree.backup(file);
  } finally {
    await tree.close();
  }
}

/**
 * Restores a backup as a state folder's tree. `force`: replaces an existing tree, but never one that a process holds. Throws
 * ProcessError or StoreRefused.
 */
export function restoreTree(stateFolder: string, file: string, force: boolean): void {
  makeStateFolder(stateFolder);
  if (!force && fileExists(`${stateFolder}/tree.sqlite`))
    throw new ProcessError(
      "process.tree_exists",
      `the state folder ${stateFolder} holds a tree already: back it up first with "nodeyard backup", then restore with --force`,
    );
  if (!fileExists(file))
    throw new ProcessError(
      "process.no_such_backup",
      `there is no file ${file}: name one that "nodeyard backup" wrote`,
    );
  restoreEmbeddedTree({ folder: stateFolder, backup: file });
}
