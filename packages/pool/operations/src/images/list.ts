import {
  type Canary,
  canaryPath,
  decodeCanary,
  decodeImageBuild,
  decodeImageUpload,
  type ImageBuildRecord,
  paths,
} from "@nodeyard/model";
import { orUndefined } from "@nodeyard/tree";
import type { ImageUploadEntry } from "@nodeyard/view";
import type { OperationHandles } from "../handles.ts";
import type { Listing } from "../listing.ts";

/** A build of an image, as `dib-image-list` shows it. */
export interface ListedBuild {
  readonly image: string;
  readonly record: ImageBuildRecord;
  /** No builds of the image are begun, by the flag in the tree; a pause in a configuration is not known here. */
  readonly paused: boolean;
}

/** An upload of a build, as `image-list` shows it. */
export type ListedUpload = ImageUploadEntry;

/** Of an image what `image-status` shows. */
export interface ImageStatus {
  readonly image: string;
  readonly paused: boolean;
  /** Null: no build is requested. `at`: when it was requested last, seconds. */
  readonly request: { readonly state: "pending" | "building"; readonly at: number } | null;
  /** The trial of a new build; null: the image has never had one, or its record cannot be read. */
  readonly canary: Canary | null;
}

/** Collected on the way by each reader. */
type Skipped = { path: string; why: string }[];

/** All builds that the tree has. By image, then the newest first. */
export function listBuilds(handles: OperationHandles): Promise<Listing<ListedBuild>> {
  return ofEach(handles, buildsOf);
}

/** All uploads that the tree has. By image, build, provider and number. */
export function listUploads(handles: OperationHandles): Promise<Listing<ListedUpload>> {
  return ofEach(handles, uploadsOf);
}

/** Images that the tree knows, sorted by name. A request whose image is being built counts as building. */
export function listImages(handles: OperationHandles): Promise<Listing<ImageStatus>> {
  return ofEach(handles, async (...one) => [await statusOf(...one)]);
}

/** What `read` finds of each image that the tree knows, by name. */
async function ofEach<T>(
  handles: OperationHandles,
  read: (handles: OperationHandles, image: string, skipped: Skipped) => Promise<readonly T[]>,
): Promise<Listing<T>> {
  const skipped: Skipped = [];
  const all = await names(handles, paths.images);
  return { items: (await Promise.all(all.map((image) => read(handles, image, skipped)))).flat(), skipped };
}

/** One image as the three lists have it; records that make no sense are left out. */
export async function lookUpImage({ tree }: OperationHandles, image: string) {
  const skipped: Skipped = [];
  const [status, builds, uploads] = await Promise.all([
    statusOf({ tree }, image, skipped),
    buildsOf({ tree }, image, skipped),
    uploadsOf({ tree }, image, skipped),
  ]);
  return { status, builds, uploads };
}

/** Builds of one image, the newest first, with whether builds of it are paused. */
async function buildsOf(
  { tree }: Pick<OperationHandles, "tree">,
  image: string,
  skipped: Skipped,
): Promise<readonly ListedBuild[]> {
  const paused = (await tree.stat(paths.imagePause(image))) !== undefined;
  const own: ListedBuild[] = [];
  for (const id of await names({ tree }, paths.imageBuilds(image))) {
    const path = paths.imageBuild(image, id);
    const record = await read({ tree }, path, (data) => decodeImageBuild(id, data), skipped);
    if (record !== undefined) own.push({ image, record, paused });
  }
  return own.sort((a, b) => (b.record.stateTime ?? 0) - (a.record.stateTime ?? 0));
}

/** Uploads of one image, by build, provider and number: three levels of folders. */
async function uploadsOf(
  { tree }: Pick<OperationHandles, "tree">,
  image: string,
  skipped: Skipped,
): Promise<readonly ListedUpload[]> {
  const own: ListedUpload[] = [];
  for (const build of await names({ tree }, paths.imageBuilds(image)))
    for (const provider of await names({ tree }, paths.imageProviders(image, build)))
      for (const id of await names({ tree }, paths.imageUploads(image, build, provider))) {
        const path = paths.imageUpload(image, build, provider, id);
        const record = await read({ tree }, path, (data) => decodeImageUpload(id, data), skipped);
        if (record !== undefined) own.push({ image, build, provider, record });
      }
  return own;
}

/** The state of a request is the builders' lock: a builder that has it builds the image. */
async function statusOf(
  { tree }: Pick<OperationHandles, "tree">,
  image: string,
  skipped: Skipped,
): Promise<ImageStatus> {
  const [pause, asked, contenders, canary] = await Promise.all([
    tree.stat(paths.imagePause(image)),
    tree.stat(paths.imageRequest(image)),
    orUndefined(tree.children(paths.imageBuildsLock(image))),
    read({ tree }, canaryPath(image), (data) => decodeCanary(image, data), skipped),
  ]);
  // A builder holds this lock for a whole build (docs/contract/locks.md, "Who takes which lock").
  const state = (contenders ?? []).length > 0 ? ("building" as const) : ("pending" as const);
  return {
    image,
    paused: pause !== undefined,
    request: asked === undefined ? null : { state, at: asked.mtime / 1000 },
    canary: canary ?? null,
  };
}

/** Names of children, sorted, but "lock", which stands beside builds and uploads. Empty for a path that does not exist. */
export async function names(
  { tree }: Pick<OperationHandles, "tree">,
  path: string,
): Promise<readonly string[]> {
  return ((await orUndefined(tree.children(path))) ?? []).filter((name) => name !== "lock").sort();
}

/** Undefined for a record that is gone, empty or unreadable; unreadable ones are reported. */
async function read<T>(
  { tree }: Pick<OperationHandles, "tree">,
  path: string,
  decode: (data: Uint8Array) => T,
  skipped: Skipped,
): Promise<T | undefined> {
  const found = await orUndefined(tree.get(path));
  if (found === undefined || found.data.length === 0) return undefined;
  try {
    return decode(found.data);
  } catch (error) {
    skipped.push({ path, why: (error as Error).message });
    return undefined;
  }
}
