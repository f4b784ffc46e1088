import { decodeImageBuild, type ImageBuildRecord, paths, RecordError } from "@nodeyard/model";
import { orUndefined } from "@nodeyard/tree";
import type { BuilderContext } from "./context.ts";

export interface Request {
  /** Milliseconds of tree time: of the last that asked. */
  readonly at: number;
  /** The flag's version: whoever asks again moves it. */
  readonly version: number;
}

export interface ImageInTree {
  readonly builds: readonly ImageBuildRecord[];
  readonly paused: boolean;
  readonly request: Request | undefined;
}

/** One image as the tree itself has it, to be asked under its build lock. Records that make no sense are left out. */
export async function readImage({ tree }: Pick<BuilderContext, "tree">, image: string): Promise<ImageInTree> {
  await tree.sync(paths.image(image));
  const [ids, pause, asked] = await Promise.all([
    orUndefined(tree.children(paths.imageBuilds(image))),
    tree.stat(paths.imagePause(image)),
    tree.stat(paths.imageRequest(image)),
  ]);
  const builds = await Promise.all(
    (ids ?? [])
      .filter((id) => id !== "lock")
      .map(async (id) => {
        const found = await orUndefined(tree.get(paths.imageBuild(image, id)));
        if (found === undefined || found.data.length === 0) return undefined;
        try {
          return decodeImageBuild(id, found.data);
        } catch (error) {
          if (error instanceof RecordError) return undefined;
          throw error;
        }
      }),
  );
  return {
    builds: builds.filter((build) => build !== undefined),
    paused: pause !== undefined,
    request: asked && { at: asked.mtime, version: asked.version },
  };
}
