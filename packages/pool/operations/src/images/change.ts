import {
  changeImageBuild,
  changeImageUpload,
  decodeImageBuild,
  decodeImageUpload,
  encodeImageBuild,
  encodeImageUpload,
  paths,
} from "@nodeyard/model";
import { NodeyardError } from "@nodeyard/runtime";
import { ensurePath, orUndefined, TreeError, treeNow } from "@nodeyard/tree";
import type { OperationHandles } from "../handles.ts";

/** An image, build or upload cannot be changed as asked; the message says why and what to do. */
export class ImageOperationError extends NodeyardError {}

/**
 * Requests a build. An existing request is renewed, so that a build which began earlier does not answer it: builders compare its
 * time. The image need not be known: the configuration of a builder may have it.
 */
export async function requestBuild({ tree }: OperationHandles, image: string): Promise<void> {
  const path = paths.imageRequest(image);
  await ensurePath(tree, paths.image(image));
  try {
    await tree.create(path);
  } catch (error) {
    if (!isCode(error, "tree.node_exists")) throw error;
    // A builder has just answered and deleted the request: create it again.
    await tree.set(path, new Uint8Array()).catch(async (gone: unknown) => {
      if (!isCode(gone, "tree.no_node")) throw gone;
      await tree.create(path).catch((again: unknown) => {
        if (!isCode(again, "tree.node_exists")) throw again;
      });
    });
  }
}

/** Pauses an image, or ends its pause. Idempotent. Builds under way go on. */
export async function pauseImage({ tree }: OperationHandles, image: string, paused: boolean): Promise<void> {
  if (paused) await ensurePath(tree, paths.imagePause(image));
  else await orUndefined(tree.delete(paths.imagePause(image)));
}

/**
 * Marks a build: builders delete its uploads, files and record. Rejects with ImageOperationError for one that does not exist or
 * is being built, because its builder would write over the mark.
 */
export async function deleteBuild(handles: OperationHandles, image: string, build: string): Promise<void> {
  const path = paths.imageBuild(image, build);
  await change(handles, path, (data) => {
    const record = decodeImageBuild(build, data);
    if (record.state === "building")
      throw new ImageOperationError(
        "operation.build_in_progress",
        `build ${image}-${build} is in progress: delete it when it has ended, or stop its builder`,
      );
    return encodeImageBuild(changeImageBuild(record, { state: "deleting" }, treeNow(handles) / 1000));
  });
}

/** Marks an upload: builders delete it at the provider, then its record; and upload the newest build again if it was of that. */
export async function deleteUpload(
  handles: OperationHandles,
  at: { readonly image: string; readonly build: string; readonly provider: string; readonly upload: string },
): Promise<void> {
  await change(handles, paths.imageUpload(at.image, at.build, at.provider, at.upload), (data) => {
    const record = decodeImageUpload(at.upload, data);
    if (record.state === "uploading")
      throw new ImageOperationError(
        "operation.upload_in_progress",
        `upload ${at.upload} of build ${at.image}-${at.build} to ${at.provider} is in progress: delete it when it has ended`,
      );
    return encodeImageUpload(changeImageUpload(record, { state: "deleting" }, treeNow(handles) / 1000));
  });
}

/** Changes a record without a lock, as Nodepool's command line does, but only if its version has not changed since it was read. */
async function change(
  { tree }: OperationHandles,
  path: string,
  next: (data: Uint8Array) => Uint8Array,
): Promise<void> {
  for (let tries = 0; ; tries++) {
    const found = await orUndefined(tree.get(path));
    if (found === undefined || found.data.length === 0)
      throw new ImageOperationError(
        "operation.no_image",
        `there is no ${path}; see "nodeyard dib-image-list" and "nodeyard image-list"`,
      );
    try {
      await tree.set(path, next(found.data), { version: found.stat.version });
      return;
    } catch (error) {
      if (!isCode(error, "tree.bad_version") || tries >= 5) throw error;
    }
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof TreeError && error.code === code;
}
