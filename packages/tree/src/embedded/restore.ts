import { replaceFile } from "./edge/replace-file.ts";
import { prepareFolder } from "./edge/state-folder.ts";

/**
 * Puts a backup in the place of a state folder's tree. Refused (`StoreRefused`) while a process holds the tree, and
 * when the backup is damaged or not ours. Opening it afterwards starts a new epoch of zxids.
 */
export function restoreEmbeddedTree(options: { readonly folder: string; readonly backup: string }): void {
  const { file } = prepareFolder(options.folder);
  replaceFile(options.folder, options.backup, file);
}
