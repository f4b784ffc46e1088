import { lockImages } from "@nodeyard/builder";
import type { Config } from "@nodeyard/config";
import { messageOf } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import { isFolder } from "./edge/files.ts";
import { ProcessError } from "./errors.ts";

/**
 * The folder of a builder, and the lock by which it is the only one there; without one where the file system has no locks. The
 * role releases it.
 */
export interface ImagesFolder {
  readonly path: string;
  readonly lock: Disposable | undefined;
}

/** The images-dir of a configuration in the file `path`. Throws ProcessError where it has none, or another builder works in it. */
export function openImagesFolder({ builder: { imagesDir } }: Config, path: string, log: Log): ImagesFolder {
  if (imagesDir === null)
    throw new ProcessError(
      "process.no_images_dir",
      `${path} names no images-dir: add the folder that built images are kept in`,
    );
  if (!isFolder(imagesDir))
    throw new ProcessError(
      "process.no_images_dir",
      `images-dir ${imagesDir} of ${path} is not a folder: create it, on a disk with room for images`,
    );
  const lock = lockOrWarn(imagesDir, log);
  if (lock !== "taken") return { path: imagesDir, lock };
  throw new ProcessError(
    "process.images_dir_taken",
    `another builder works in images-dir ${imagesDir} of ${path}, and two would end each other's builds: stop it, or give each builder its own folder`,
  );
}

/** Undefined where the file system has no locks, or cannot be written now: a warning, for no build is lost by that alone. */
function lockOrWarn(folder: string, log: Log): Disposable | "taken" | undefined {
  try {
    return lockImages(folder);
  } catch (error) {
    log.warn(
      { folder, error: messageOf(error) },
      "cannot lock images-dir: make sure that no other builder uses it",
    );
    return undefined;
  }
}
