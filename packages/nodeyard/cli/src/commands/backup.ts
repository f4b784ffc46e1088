import { backupTree, restoreTree } from "@nodeyard/process";
import type { Command } from "commander";
import { UsageError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";

interface Options {
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `nodeyard backup`: the file is written whole or not at all, and an existing one is replaced only by a whole one. */
export function defineBackup(command: Command, session: Session): void {
  command
    .argument("<path>", "file to write; only you can read it")
    .option("--json", "an object on stdout: path, state_folder")
    .action(async (path: string, { json }: Options) => {
      const folder = embeddedOf(session);
      await backupTree(folder, path, session.machine);
      if (json === true) printJson(session.io, { path, state_folder: folder });
      else session.io.out(`the tree of ${folder} is backed up in ${path}\n`);
    });
}

/** `nodeyard restore`: of an embedded tree only, and of one that no process holds. */
export function defineRestore(command: Command, session: Session): void {
  command
    .argument("<path>", "file that backup wrote")
    .option("--force", "replace the tree that is in the state folder")
    .option("--json", "an object on stdout: path, state_folder")
    .action(async (path: string, { force, json }: Options) => {
      const folder = embeddedOf(session);
      await restoreTree(folder, path, force === true);
      if (json === true) printJson(session.io, { path, state_folder: folder });
      else session.io.out(`the tree of ${folder} is that of ${path}; start it with: nodeyard up\n`);
    });
}

/** Both are of a state folder: a ZooKeeper has means of its own. */
function embeddedOf(session: Session): string {
  if (session.options().config !== undefined)
    throw new UsageError(
      "-c has no effect here: the embedded tree is in a state folder, which --state DIR names; back up a ZooKeeper by its own means, and images by export-image-data",
    );
  return stateOf(session);
}
