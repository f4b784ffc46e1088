import {
  changeImageBuild,
  changeImageUpload,
  decodeImageBuild,
  decodeImageUpload,
  encodeImageBuild,
  encodeImageUpload,
  type ImageBuildPatch,
  type ImageBuildRecord,
  type ImageUploadPatch,
  type ImageUploadRecord,
  paths,
} from "@nodeyard/model";
import { logEvent } from "@nodeyard/telemetry";
import {
  type CreateOp,
  FenceLost,
  type HeldLock,
  HeldRecord,
  isInterrupted,
  isRefused,
  orUndefined,
  type RecordKind,
  TreeError,
} from "@nodeyard/tree";
import type { BuilderContext } from "./context.ts";

/** The record of a build under its image's build lock, written with a fence. */
export type HeldBuild = HeldRecord<ImageBuildRecord, ImageBuildPatch>;
/** The record of an upload under the lock of its build and provider, or of its own. */
export type HeldUpload = HeldRecord<ImageUploadRecord, ImageUploadPatch>;

const buildKind: RecordKind<ImageBuildRecord, ImageBuildPatch> = {
  decode: decodeImageBuild,
  encode: encodeImageBuild,
  change: changeImageBuild,
  // A change by others that leaves these as they are does not take the ground from our write.
  sameGround: (ours, theirs) => ours.state === theirs.state && ours.builderId === theirs.builderId,
};

const uploadKind: RecordKind<ImageUploadRecord, ImageUploadPatch> = {
  decode: decodeImageUpload,
  encode: encodeImageUpload,
  change: changeImageUpload,
  sameGround: (ours, theirs) => ours.state === theirs.state,
};

/**
 * Until a lock is tried again that another one has, milliseconds. The end of his work is an event, too; that of a dead builder's
 * session is none.
 */
export const BUSY_MS = 10_000;

type Parts = Pick<BuilderContext, "tree" | "clock">;

/** `version`: of the record as it was read. */
export function heldBuild(
  { tree, clock }: Parts,
  held: HeldLock,
  image: string,
  record: ImageBuildRecord,
  version: number,
): HeldBuild {
  const path = paths.imageBuild(image, record.id);
  return new HeldRecord(tree, clock, buildKind, { id: record.id, path, held, record, version });
}

export function heldUpload(
  { tree, clock }: Parts,
  held: HeldLock,
  path: string,
  record: ImageUploadRecord,
  version: number,
): HeldUpload {
  return new HeldRecord(tree, clock, uploadKind, { id: record.id, path, held, record, version });
}

/** The record of a build after a `sync`, so that it is not older than the lock under which it is read. */
export async function readBuild({ tree }: Pick<Parts, "tree">, image: string, build: string) {
  const path = paths.imageBuild(image, build);
  await tree.sync(path);
  const found = await orUndefined(tree.get(path));
  if (found === undefined || found.data.length === 0) return undefined;
  return { record: decodeImageBuild(build, found.data), version: found.stat.version };
}

/**
 * Settles a build whose builder is gone, since the build lock of its image is ours. It counts as a failure, so that a build that kills its
 * builder is not repeated at once.
 */
export async function settleBuild(
  context: Parts & Pick<BuilderContext, "log">,
  held: HeldLock,
  image: string,
  { record, version }: { readonly record: ImageBuildRecord; readonly version: number },
): Promise<void> {
  await heldBuild(context, held, image, record, version).write({ state: "failed" });
  logEvent(context.log, { event: "build.abandoned", image, build: record.id });
}

/** Makes a record under a lock and resolves with its path. Rejects with FenceLost when the lock went with its session. */
export async function createUnder(
  { tree }: Pick<BuilderContext, "tree">,
  held: HeldLock,
  record: CreateOp,
): Promise<string> {
  try {
    const [, made] = await tree.commit([held.fence, record]);
    return made.path;
  } catch (error) {
    throw isRefused(error, "tree.no_node", held.contender)
      ? new FenceLost(`lock ${held.contender}`, error)
      : error;
  }
}

/**
 * Runs `work` under a lock and gives it back, whatever happens. "busy": another builder has it; "gone": what the lock belongs to
 * does not exist. Rejects as `work` does.
 */
export async function underLock<T>(
  context: Pick<BuilderContext, "fence">,
  parent: string,
  work: (held: HeldLock) => Promise<T>,
): Promise<T | "busy" | "gone"> {
  const held = await context.fence.lock(parent);
  if (typeof held === "string") return held;
  try {
    return await work(held);
  } finally {
    // With a session that is gone the lock is, too.
    await held.release().catch((error: unknown) => {
      if (!(error instanceof TreeError) || !isInterrupted(error)) throw error;
    });
  }
}
