import {
  CANARIES,
  canaryPath,
  decodeCanary,
  decodeImageBuild,
  decodeImageUpload,
  paths,
} from "@nodeyard/model";
import { ensurePath, orUndefined, TreeError } from "@nodeyard/tree";
import { registeredBuilders } from "../explain/tree-facts.ts";
import type { OperationHandles } from "../handles.ts";
import { ImageOperationError } from "./change.ts";
import { names } from "./list.ts";

/** One part of a path, as the tree takes it: not "." or "..", no slash, no control characters. */
const PART = "(?!\\.{1,2}(?:/|$))[^/\\p{Cc}]+";
const BUILDS = `/nodepool/images/${PART}/builds/[0-9a-f]+`;
const FLAG = new RegExp(`^/nodepool/images/${PART}/pause$`, "u");
const BUILD = new RegExp(`^${BUILDS}$`, "u");
const UPLOAD = new RegExp(`^(${BUILDS}/providers/${PART}/images)/(\\d{10})$`, "u");
const TRIAL = new RegExp(`^${CANARIES}/(${PART})$`, "u");
/** Of an upload: the ten digits of its sequence number. */
const NUMBER = /^\d{10}$/;

/**
 * All image records that a restore needs, by path, as text: flags, builds and uploads (docs/contract/tree.md, "Exported image records").
 * Trials too, because a build that was rolled back would be launched again without its trial.
 */
export async function exportImages({ tree }: OperationHandles): Promise<Readonly<Record<string, string>>> {
  const out: Record<string, string> = {};
  const add = async (path: string) => {
    const found = await orUndefined(tree.get(path));
    if (found !== undefined && (found.data.length > 0 || FLAG.test(path)))
      out[path] = Buffer.from(found.data).toString();
  };
  for (const image of await names({ tree }, paths.images)) {
    await add(paths.imagePause(image));
    // Before its builds: also when it is written back, none is ready whose trial is not known yet.
    await add(canaryPath(image));
    for (const build of await names({ tree }, paths.imageBuilds(image))) {
      await add(paths.imageBuild(image, build));
      for (const provider of await names({ tree }, paths.imageProviders(image, build)))
        for (const upload of await names({ tree }, paths.imageUploads(image, build, provider)))
          await add(paths.imageUpload(image, build, provider, upload));
    }
  }
  return out;
}

/**
 * Checks a whole export before anything is written: paths and records, so that nothing else can be written by it. Throws
 * ImageOperationError.
 */
export function checkExport(value: unknown): ReadonlyMap<string, Uint8Array> {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw bad("it is not a JSON object of paths");
  return new Map(
    Object.entries(value).map(([path, text]) => {
      if (typeof text !== "string") throw bad(`${path} is not a string`);
      const data = Buffer.from(text);
      try {
        if (UPLOAD.test(path)) decodeImageUpload(path.slice(-10), data);
        else if (BUILD.test(path)) decodeImageBuild(path, data);
        else if (TRIAL.test(path)) decodeCanary(TRIAL.exec(path)![1]!, data);
        else if (!FLAG.test(path) || text !== "")
          throw new Error("it is not a pause flag, build, upload or trial");
      } catch (error) {
        throw bad(`${path}: ${(error as Error).message}`, error);
      }
      return [path, data] as const;
    }),
  );
}

/**
 * Writes an export back, in the order of the file; rejects with ImageOperationError while a builder runs. New uploads get numbers
 * above the imported ones. Twice: the same.
 */
export async function importImages(
  { tree }: OperationHandles,
  all: ReadonlyMap<string, Uint8Array>,
): Promise<void> {
  const builders = await registeredBuilders(tree);
  if (builders.length > 0)
    throw new ImageOperationError(
      "operation.builder_runs",
      `a builder runs on ${builders.join(", ")}, and could delete what is imported before it is complete; stop it first, or for "nodeyard up" start it with a configuration without diskimages`,
    );
  const highest = new Map<string, number>();
  for (const path of all.keys()) {
    const [, folder, number] = UPLOAD.exec(path) ?? [];
    if (folder !== undefined) highest.set(folder, Math.max(highest.get(folder) ?? 0, Number(number)));
  }
  for (const [folder, number] of highest) {
    await ensurePath(tree, folder);
    await removeFillers(tree, folder, all);
    await countPast(tree, folder, number);
  }
  for (const [path, data] of all) {
    await ensurePath(tree, path.slice(0, path.lastIndexOf("/")));
    await tree.create(path, data).catch(async (error: unknown) => {
      if (!(error instanceof TreeError) || error.code !== "tree.node_exists") throw error;
      await tree.set(path, data);
    });
  }
}

/** What an import left behind that was killed while it counted: a number without a record, which no builder makes or ends. */
async function removeFillers(
  tree: OperationHandles["tree"],
  folder: string,
  all: ReadonlyMap<string, Uint8Array>,
): Promise<void> {
  for (const name of await names({ tree }, folder)) {
    const path = `${folder}/${name}`;
    if (!NUMBER.test(name) || all.has(path)) continue;
    const found = await orUndefined(tree.get(path));
    if (found?.data.length === 0) await tree.delete(path);
  }
}

/** The counter of a folder only moves by creating: fillers are made and deleted until it is past `number`. O(number) calls. */
async function countPast(tree: OperationHandles["tree"], folder: string, number: number): Promise<void> {
  for (;;) {
    const { path } = await tree.create(`${folder}/`, undefined, { sequential: true });
    await tree.delete(path);
    if (Number(path.slice(-10)) >= number) return;
  }
}

function bad(why: string, cause?: unknown): ImageOperationError {
  return new ImageOperationError(
    "operation.bad_export",
    `this is not an export of image data: ${why}; make one with "nodeyard export-image-data FILE"`,
    { cause },
  );
}
