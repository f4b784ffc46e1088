import type { UploadedImageSettings, UploadSettings } from "@nodeyard/config";
import { beforeEffect } from "@nodeyard/coordination";
import {
  formatTemplate,
  type ImageTag,
  runSteps,
  type StepContext,
  type UploadOrder,
} from "@nodeyard/driver";
import {
  decodeImageUpload,
  encodeImageUpload,
  type ImageBuildRecord,
  newImageUpload,
  paths,
} from "@nodeyard/model";
import { deadline, messageOf } from "@nodeyard/runtime";
import { logEvent } from "@nodeyard/telemetry";
import {
  FenceLost,
  type HeldLock,
  ignoreExisting,
  NoNode,
  orUndefined,
  TreeError,
  treeNow,
  treeSeconds,
} from "@nodeyard/tree";
import { baseName } from "../core/files.ts";
import { BuilderError } from "../errors.ts";
import type { FileFacts } from "../runs/disk.ts";
import { uploadChoice } from "./choices.ts";
import type { BuilderContext, ImageProvider } from "./context.ts";
import type { Page } from "./progress.ts";
import { createUnder, type HeldUpload, heldUpload, underLock } from "./records.ts";
import { externalIdOf, removeFromCloud } from "./remove-upload.ts";

/** Milliseconds after which a post-upload hook counts as hanging. */
const HOOK_MS = 30 * 60_000;

/** One upload to make: a build in one format, for one provider. */
export interface UploadJob {
  readonly image: string;
  readonly build: string;
  readonly format: string;
  readonly provider: ImageProvider;
  readonly settings: UploadSettings;
}

/** How it ended. "busy": another builder has the lock, or the upload is no longer wanted. */
export type UploadOutcome = "ready" | "failed" | "busy";

/**
 * Uploads a build to a provider, under the lock of that pair, and records it in the tree (docs/contract/builder.md, "Uploads").
 * Rejects when the lock or the tree is lost; the record, which has no lock then, is settled by a sweep.
 */
export async function uploadImage(
  context: BuilderContext,
  job: UploadJob,
  signal: AbortSignal,
): Promise<UploadOutcome> {
  const { tree, disk, progress, counters } = context;
  const { image, build, provider, format } = job;
  const folder = paths.imageUploads(image, build, provider.name);
  // One znode at a time: if the build was deleted meanwhile, the create fails instead of making an empty build record again.
  for (const path of [paths.imageProviders(image, build), folder.slice(0, -"/images".length), folder])
    try {
      await tree.create(path).catch(ignoreExisting);
    } catch (error) {
      if (error instanceof NoNode) return "busy";
      throw error;
    }
  const page = progress.open({ kind: "upload", image, build, provider: provider.name });
  try {
    const outcome = await underLock(
      context,
      paths.imageUploadsLock(image, build, provider.name),
      async (held) => {
        const wanted = await stillWanted(context, job);
        if (wanted === undefined) return "busy" as const;
        // Before the record is created: without the file the upload fails here and leaves no record.
        const file = await disk.describe(baseName(image, build), format, signal);
        page.update({ total: file.size, phase: "upload" });
        const record =
          (await leftRecord(context, job, held, wanted.resume)) ??
          (await createRecord(context, held, folder, wanted.build));
        const began = context.clock.monotonic();
        const result = await carryOut(context, job, { record, file, page }, signal);
        const ms = context.clock.monotonic() - began;
        counters.time("builder.upload", ms, { image, provider: provider.name, result });
        return result;
      },
    );
    if (outcome === "gone") return "busy";
    if (outcome !== "busy")
      counters.add("builder.uploads", 1, { image, provider: provider.name, result: outcome });
    return outcome;
  } finally {
    page.end();
  }
}

/**
 * The build to upload, and the upload to resume, if the choice is still the same after a comparison with the tree: another builder may
 * have finished it since the first choice.
 */
async function stillWanted(
  context: BuilderContext,
  { image, build, format, provider }: UploadJob,
): Promise<{ readonly build: ImageBuildRecord; readonly resume: string | undefined } | undefined> {
  const { view, disk } = context;
  await view.resync("/nodepool/images");
  const choice = uploadChoice(context, provider.name, image, await disk.list(), treeNow(context));
  if (choice?.upload !== true || choice.build !== build || choice.format !== format) return undefined;
  const record = view.images.builds(image).get(build);
  return record && { build: record, resume: choice.resume };
}

/** The record of an upload that its builder left. Its lock was free, so no other builder resumes it. */
async function leftRecord(
  context: BuilderContext,
  { image, build, provider }: UploadJob,
  held: HeldLock,
  id: string | undefined,
): Promise<HeldUpload | undefined> {
  if (id === undefined) return undefined;
  const path = paths.imageUpload(image, build, provider.name, id);
  const found = await orUndefined(context.tree.get(path));
  if (found === undefined || found.data.length === 0) return undefined;
  return heldUpload(context, held, path, decodeImageUpload(id, found.data), found.stat.version);
}

/** Creates the upload's record. When the reply is lost, the upload ends here; the janitor sets the record, which has no lock, to `failed`. */
async function createRecord(
  context: BuilderContext,
  held: HeldLock,
  folder: string,
  build: ImageBuildRecord,
): Promise<HeldUpload> {
  const { username, pythonPath, shellType } = build;
  const record = newImageUpload({ username, pythonPath, shellType }, treeSeconds(context));
  const data = encodeImageUpload(record);
  const path = await createUnder(context, held, { op: "create", path: `${folder}/`, data, sequential: true });
  return heldUpload(context, held, path, { ...record, id: path.slice(folder.length + 1) }, 0);
}

/** Runs the driver's steps and the hook, and writes how it ended. Rejects only when the lock or the tree is lost. */
async function carryOut(
  context: BuilderContext,
  job: UploadJob,
  work: { readonly record: HeldUpload; readonly file: FileFacts; readonly page: Page },
  signal: AbortSignal,
): Promise<"ready" | "failed"> {
  const { log, clock } = context;
  const { provider } = job;
  const { record, file } = work;
  const about = { image: job.image, build: job.build, provider: provider.name, upload: record.id };
  const began = clock.monotonic();
  const took = () => Math.round(clock.monotonic() - began);
  const tag: ImageTag = {
    installation: context.installation,
    provider: provider.name,
    image: job.image,
    buildId: job.build,
    uploadId: record.id,
  };
  try {
    const order = orderOf(context, job, work, tag);
    const { name, format } = order;
    logEvent(log, { event: "upload.started", ...about, name, bytes: file.size, format });
    const upload = (step: StepContext) => provider.store.upload(order, step);
    const externalId = await runSteps(upload, {
      clock,
      // No step starts after the lock may be lost: two builders must not upload under one record.
      before: () => beforeEffect(context, record.held),
      signal,
      externalId: externalIdOf(record.record.externalId),
      save: (id) => record.write({ externalId: id }),
      onStep: ({ step }) => work.page.update({ phase: step }),
    });
    await runHook(context, job, { externalId, file: file.path, page: work.page }, signal);
    await record.write({ state: "ready", externalId, externalName: order.name, format });
    context.failures.delete(`${job.image}/${provider.name}`);
    logEvent(log, { event: "upload.ready", ...about, external_id: externalId, ms: took() });
    return "ready";
  } catch (error) {
    if (error instanceof FenceLost || error instanceof TreeError) throw error;
    context.failures.set(`${job.image}/${provider.name}`, { build: job.build, why: messageOf(error) });
    logEvent(log, { event: "upload.failed", ...about, ms: took(), error: messageOf(error) });
    // The image is removed before the record says `failed`, so that a failed record never hides an image that costs money.
    const externalId = await discard(context, job, record, tag, signal);
    await record.write({ state: "failed", externalId });
    return "failed";
  }
}

/** Deletes the image of a failed upload. If that fails, the record keeps the id, and the janitor tries again. */
async function discard(
  context: BuilderContext,
  { provider }: UploadJob,
  record: HeldUpload,
  tag: ImageTag,
  signal: AbortSignal,
) {
  const known = externalIdOf(record.record.externalId);
  try {
    await removeFromCloud(context, provider, record.held, tag, known, signal);
    return null;
  } catch (error) {
    context.log.warn(
      { ...tag, error: messageOf(error) },
      "cannot delete what a failed upload left; will retry when its record is deleted",
    );
    return known;
  }
}

/** What the driver is given. Throws BuilderError for a name format that makes no name. */
function orderOf(
  context: BuilderContext,
  { image, settings, format }: UploadJob,
  { record, file, page }: { readonly record: HeldUpload; readonly file: FileFacts; readonly page: Page },
  tag: ImageTag,
): UploadOrder {
  const name = formatTemplate(settings.nameFormat, {
    image_name: image,
    upload_id: record.id,
    timestamp: String(Math.floor(treeSeconds(context))),
  });
  if ("problem" in name)
    throw new BuilderError(
      "builder.bad_name_format",
      `image-name-format ${JSON.stringify(settings.nameFormat)} of provider ${tag.provider} ${name.problem}: use {image_name}, {upload_id} and {timestamp}`,
    );
  const listed: UploadedImageSettings | undefined = settings.images.get(image);
  return {
    tag,
    name: name.text,
    file: file.path,
    format,
    size: file.size,
    sha256: file.sha256,
    md5: file.md5,
    // What a provider lists for the image overrides what the image has for all.
    metadata: { ...context.settings.images.get(image)?.metadata, ...listed?.metadata },
    own: listed?.own ?? {},
    progress: (sent) => page.update({ bytes: sent }),
  };
}

/** Runs the configured program. Any exit code but 0 fails the upload (docs/contract/builder.md, "Post-upload hook"). */
async function runHook(
  { disk, clock, log }: BuilderContext,
  { provider, settings, image, build }: UploadJob,
  { externalId, file, page }: { readonly externalId: unknown; readonly file: string; readonly page: Page },
  parent: AbortSignal,
): Promise<void> {
  const hook = settings.postUploadHook;
  if (hook === null) return;
  page.update({ phase: "post-upload-hook" });
  const late = new BuilderError(
    "builder.hook_late",
    `post-upload-hook ${hook} took longer than ${HOOK_MS / 1000} s`,
  );
  using limit = deadline(clock, HOOK_MS, () => late, parent);
  const id = typeof externalId === "string" ? externalId : JSON.stringify(externalId);
  const { code, output } = await disk.hook(hook, [provider.name, id, file], limit.signal);
  limit.signal.throwIfAborted();
  if (code !== 0)
    throw new BuilderError("builder.hook_failed", `post-upload-hook ${hook} ended with ${code}: ${output}`);
  log.info({ image, build, provider: provider.name, hook, output }, "the post-upload hook ran");
}
