import { isDeepStrictEqual } from "node:util";
import { mayAct } from "@nodeyard/coordination";
import { canaryPath, decodeCanary, decodeImageUpload, type ImageBuildRecord, paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { logEvent } from "@nodeyard/telemetry";
import { FenceLost, type HeldLock, orUndefined, TreeError, treeNow } from "@nodeyard/tree";
import { type RetireFacts, type Retirement, retire, uploadKey } from "../core/retire.ts";
import type { BuilderContext } from "./context.ts";
import { heldBuild, heldUpload, readBuild, settleBuild, underLock } from "./records.ts";
import { externalIdOf, removeFromCloud } from "./remove-upload.ts";

type UploadEnd = Extract<Retirement, { readonly upload: string }>;

/** `awaited`: uploads that only stay because a node boots from them, as `imageUploadOf` names them. */
export interface Swept {
  readonly awaited: ReadonlySet<string>;
  /** A build was not removed, since another builder was in line for it: both may have left it to the other, which no event tells. */
  readonly crossed: boolean;
}

/** One pass over all images of the tree. A failure is logged and stops nothing else; the next pass retries. */
export async function sweepImages(context: BuilderContext, signal: AbortSignal): Promise<Swept> {
  const { view, log, counters } = context;
  const used = usedUploads(context);
  const awaited = new Set<string>();
  let crossed = false;
  for (const image of [...view.images.names()].sort()) {
    const facts = factsOf(context, image, used);
    const ends = retire(facts);
    if (facts.used.size > 0) for (const key of heldBack(facts, ends)) awaited.add(`${image}/${key}`);
    for (const end of ends) {
      if (signal.aborted || !mayAct(context)) return { awaited, crossed };
      try {
        if (await carryOut(context, image, end, signal)) counters.add("builder.retired", 1, { kind: end.do });
        else if (end.do === "remove-build") crossed = true;
      } catch (error) {
        if (error instanceof FenceLost) continue;
        const about = { image, ...end, error: messageOf(error) };
        log.warn(about, "cannot delete a build or an upload; will retry");
      }
    }
  }
  return { awaited, crossed };
}

/** What `retire` decides by, as the view has it. `used`: uploads that nodes boot from, by image. */
function factsOf(
  context: BuilderContext,
  image: string,
  used: ReadonlyMap<string, ReadonlySet<string>>,
): RetireFacts {
  const { view, settings, providers } = context;
  const lists = (name: string) => settings.uploads.get(name)?.images.has(image) ?? false;
  return {
    now: treeNow(context),
    configured: settings.images.has(image),
    builds: [...view.images.builds(image).values()],
    uploads: [...view.images.uploads(image)],
    providers: new Map([...providers.keys()].map((name) => [name, lists(name)])),
    ...trialOf(context, image),
    used: used.get(image) ?? new Set<string>(),
  };
}

/** Keys of uploads that would go if no node used them: their deletion waits for a node, and the end of that node wakes the sweep. */
function heldBack(facts: RetireFacts, ends: readonly Retirement[]): readonly string[] {
  const going = (all: readonly Retirement[]) =>
    all.flatMap((end) =>
      end.do === "delete-upload" ? [uploadKey(end.build, end.provider, end.upload)] : [],
    );
  const already = new Set(going(ends));
  return going(retire({ ...facts, used: new Set() })).filter((key) => !already.has(key));
}

/** `<image>/<build>/<provider>/<number>` of the upload that a node boots; undefined where its record names none. */
export function imageUploadOf(imageId: string | null): string | undefined {
  const parts = imageId?.split("/") ?? [];
  const [, , , image, , build, , provider, , upload] = parts;
  return parts.length === 10 ? `${image}/${uploadKey(build!, provider!, upload!)}` : undefined;
}

/** What the record of the image's trial says; without one no build is on trial and none is rejected. */
function trialOf({ view }: BuilderContext, image: string): Pick<RetireFacts, "candidate" | "rejected"> {
  const entry = view.own.get(canaryPath(image));
  if (entry === undefined) return { candidate: null, rejected: new Set() };
  const { candidate, rejected } = decodeCanary(image, entry.data);
  return { candidate, rejected: new Set(rejected) };
}

/** Uploads that nodes boot from, by image: as the nodes' records name them. */
function usedUploads({ view }: BuilderContext): ReadonlyMap<string, ReadonlySet<string>> {
  const used = new Map<string, Set<string>>();
  const records = [...view.nodes.byId.values()].map(({ record }) => record);
  // A node whose record cannot be read may boot from an image, too.
  for (const { imageId } of [...records, ...[...view.unreadable.nodes.values()].map(({ known }) => known)]) {
    const upload = imageUploadOf(imageId ?? null);
    if (upload === undefined) continue;
    const slash = upload.indexOf("/");
    const image = upload.slice(0, slash);
    const keys = used.get(image) ?? new Set();
    used.set(image, keys.add(upload.slice(slash + 1)));
  }
  return used;
}

/**
 * Carries out one deletion; whether it happened. Under its lock it is decided again, from what the tree has then: the record is
 * read first, so that a write fails where it changed after that.
 */
async function carryOut(
  context: BuilderContext,
  image: string,
  end: Retirement,
  signal: AbortSignal,
): Promise<boolean> {
  const isWanted = async () => {
    await context.view.resync("/nodepool/images");
    const facts = factsOf(context, image, usedUploads(context));
    return retire(facts).some((other) => isDeepStrictEqual(other, end));
  };
  const outcome = await underLock(context, lockOf(image, end), async (held) => {
    if ("upload" in end) return endUpload(context, image, end, held, isWanted, signal);
    const found = await readBuild(context, image, end.build);
    return found !== undefined && (await isWanted()) && endBuild(context, image, end, held, found);
  });
  return outcome === true;
}

/** The lock that a builder would hold that works on it (docs/contract/locks.md, "Who takes which lock"). */
function lockOf(image: string, end: Retirement): string {
  switch (end.do) {
    case "settle-build":
      return paths.imageBuildsLock(image);
    case "delete-build":
    case "remove-build":
      return paths.imageBuildLock(image, end.build);
    case "settle-upload":
      return paths.imageUploadsLock(image, end.build, end.provider);
    case "delete-upload":
      return `${paths.imageUpload(image, end.build, end.provider, end.upload)}/lock`;
  }
}

/** Settles or marks a build, or deletes its record with its locks in one commit, which fails when another znode was created beneath it. */
async function endBuild(
  context: BuilderContext,
  image: string,
  { do: what, build }: Retirement,
  held: HeldLock,
  found: { readonly record: ImageBuildRecord; readonly version: number },
): Promise<boolean> {
  const { tree, log } = context;
  const path = paths.imageBuild(image, build);
  if (what === "remove-build") {
    const below = await pathsBeneath(context, path, held.contender);
    if (below === undefined) return false;
    // Its deletion is the fence of this commit: without it another builder may have the lock by now.
    if (!below.includes(held.contender)) throw new FenceLost(`lock ${held.contender}`);
    await tree.commit([
      ...below.map((each) => ({ op: "delete" as const, path: each })),
      { op: "delete", path, version: found.version },
    ]);
    logEvent(log, { event: "build.deleted", image, build });
    return true;
  }
  if (what === "settle-build") await settleBuild(context, held, image, found);
  else await heldBuild(context, held, image, found.record, found.version).write({ state: "deleting" });
  return true;
}

/**
 * Removes the paths of images that left the configuration, once their last build is gone. Commands would take the empty path for an
 * image that is still built. A path with a flag stays, because an operator has set it.
 */
export async function sweepForgotten(context: BuilderContext): Promise<void> {
  const { tree, view, settings, log } = context;
  if (!view.complete) return;
  for (const image of (await orUndefined(tree.children(paths.images))) ?? []) {
    if (settings.images.has(image) || view.images.get(image) !== undefined) continue;
    const path = paths.image(image);
    const children = (await orUndefined(tree.children(path))) ?? [];
    if (children.some((name) => `${path}/${name}` !== paths.imageBuilds(image))) continue;
    const below = await pathsBeneath(context, path);
    if (below === undefined) continue;
    try {
      // One commit: a znode that is created beneath the path at the same time keeps all of it.
      await tree.commit([...below, path].map((one) => ({ op: "delete" as const, path: one })));
      log.info({ image }, "removed the record of an image that has no builds and is not configured");
    } catch (error) {
      if (!(error instanceof TreeError)) throw error;
      log.debug({ image, error: error.message }, "cannot remove the record of an unused image; will retry");
    }
  }
}

/**
 * Everything beneath a path, the deepest first; undefined while a record, or a lock that is not our `contender`, is there. What was
 * always empty is no record, but what a lock left of one (docs/contract/locks.md, "Ghost paths").
 */
async function pathsBeneath(
  context: Pick<BuilderContext, "tree">,
  path: string,
  contender?: string,
): Promise<readonly string[] | undefined> {
  const { tree } = context;
  const all: string[] = [];
  for (const name of (await orUndefined(tree.children(path))) ?? []) {
    const child = `${path}/${name}`;
    const isContender = child.includes("__lock__");
    const found = isContender ? undefined : await orUndefined(tree.get(child));
    const isRecord = found !== undefined && (found.data.length > 0 || found.stat.version > 0);
    if ((isContender && child !== contender) || isRecord) return undefined;
    const below = await pathsBeneath(context, child, contender);
    if (below === undefined) return undefined;
    all.push(...below, child);
  }
  return all;
}

/** Deletes an upload in the cloud. The record of an abandoned upload stays as a failure; any other record is deleted. */
async function endUpload(
  context: BuilderContext,
  image: string,
  { build, provider: name, upload, do: what }: UploadEnd,
  held: HeldLock,
  isWanted: () => Promise<boolean>,
  signal: AbortSignal,
): Promise<boolean> {
  const { tree, installation, log } = context;
  const provider = context.providers.get(name);
  const path = paths.imageUpload(image, build, name, upload);
  const found = await orUndefined(tree.get(path));
  // Without the provider the image in the cloud cannot be deleted, and so the record stays.
  if (provider === undefined || found === undefined || found.data.length === 0) return false;
  if (!(await isWanted())) return false;
  const record = heldUpload(context, held, path, decodeImageUpload(upload, found.data), found.stat.version);
  const abandoned = what === "settle-upload";
  // The record says so before the image is gone: no launch may use it from then on.
  if (!abandoned && record.record.state !== "deleting") await record.write({ state: "deleting" });
  const tag = { installation, provider: name, image, buildId: build, uploadId: upload };
  await removeFromCloud(context, provider, held, tag, externalIdOf(record.record.externalId), signal);
  const about = { image, build, provider: name, upload };
  if (abandoned) {
    await record.write({ state: "failed", externalId: null });
    logEvent(log, { event: "upload.abandoned", ...about });
    return true;
  }
  await tree.commit([
    { op: "delete", path: held.contender },
    { op: "delete", path: held.parent },
    { op: "delete", path, version: record.version },
  ]);
  logEvent(log, { event: "upload.deleted", ...about });
  return true;
}
