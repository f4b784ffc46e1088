import { canaryPath, decodeCanary, decodeImageBuild, decodeImageUpload, paths } from "@nodeyard/model";
import { messageOf } from "@nodeyard/runtime";
import { orUndefined, treeNow } from "@nodeyard/tree";
import { FenceLost, type Held, mayAct } from "../../coordination/index.ts";
import { type RetireFacts, type Retirement, retire, uploadKey } from "../core/retire.ts";
import type { BuilderContext } from "./context.ts";
import { heldBuild, heldUpload, underLock } from "./records.ts";
import { externalIdOf, removeFromCloud } from "./remove-upload.ts";

type UploadEnd = Extract<Retirement, { readonly upload: string }>;

/**
 * One pass over all images of the tree. A failure is logged and stops nothing else; the next pass retries. Resolves with the
 * uploads that only stay because a node boots from them, as `imageUploadOf` names them.
 */
export async function sweepImages(
  context: BuilderContext,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const { view, settings, log, counters } = context;
  const used = usedUploads(context);
  const awaited = new Set<string>();
  for (const image of [...view.images.names()].sort()) {
    const facts: RetireFacts = {
      now: treeNow(context),
      configured: settings.images.has(image),
      builds: [...view.images.builds(image).values()],
      uploads: [...view.images.uploads(image)],
      providers: new Map(
        [...context.providers.keys()].map((name) => [
          name,
          settings.uploads.get(name)?.images.has(image) ?? false,
        ]),
      ),
      ...trialOf(context, image),
      used: used.get(image) ?? new Set<string>(),
    };
    const ends = retire(facts);
    if (facts.used.size > 0) for (const key of heldBack(facts, ends)) awaited.add(`${image}/${key}`);
    for (const end of ends) {
      if (signal.aborted || !mayAct(context)) return awaited;
      try {
        if (await carryOut(context, image, end, signal)) counters.add("builder.retired", 1, { kind: end.do });
      } catch (error) {
        if (error instanceof FenceLost) continue;
        const about = { image, ...end, error: messageOf(error) };
        log.warn(about, "cannot delete a build or an upload; will retry");
      }
    }
  }
  return awaited;
}

/** Uploads that would go if no node used them. */
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

/** Whether it happened. */
async function carryOut(
  context: BuilderContext,
  image: string,
  end: Retirement,
  signal: AbortSignal,
): Promise<boolean> {
  switch (end.do) {
    case "settle-build":
      return settleBuild(context, image, end.build);
    case "delete-build":
      return markBuild(context, image, end.build);
    case "remove-build":
      return removeBuild(context, image, end.build);
    case "settle-upload": {
      const lock = paths.imageUploadsLock(image, end.build, end.provider);
      return did(await underLock(context, lock, (held) => endUpload(context, image, end, held, signal)));
    }
    case "delete-upload": {
      const lock = `${paths.imageUpload(image, end.build, end.provider, end.upload)}/lock`;
      return did(await underLock(context, lock, (held) => endUpload(context, image, end, held, signal)));
    }
  }
}

function did(outcome: boolean | "busy" | "gone"): boolean {
  return outcome === true;
}

/** Nobody builds it: whoever did is gone. It counts as a failure, so that a build that kills its builder is not repeated at once. */
async function settleBuild(context: BuilderContext, image: string, build: string): Promise<boolean> {
  const outcome = await underLock(context, paths.imageBuildsLock(image), async (held) => {
    const found = await readBuild(context, image, build);
    if (found?.record.state !== "building") return false;
    await heldBuild(context, held, image, found.record, found.version).write({ state: "failed" });
    context.log.warn({ image, build }, "marked a build as failed: its builder is gone");
    return true;
  });
  return did(outcome);
}

async function markBuild(context: BuilderContext, image: string, build: string): Promise<boolean> {
  const outcome = await underLock(context, paths.imageBuildLock(image, build), async (held) => {
    const found = await readBuild(context, image, build);
    if (found === undefined || found.record.state === "building" || found.record.state === "deleting")
      return false;
    await heldBuild(context, held, image, found.record, found.version).write({ state: "deleting" });
    return true;
  });
  return did(outcome);
}

/** The record goes with its locks, in one commit that fails when anything else was made beneath it meanwhile. */
async function removeBuild(context: BuilderContext, image: string, build: string): Promise<boolean> {
  const { tree } = context;
  const outcome = await underLock(context, paths.imageBuildLock(image, build), async (held) => {
    const found = await readBuild(context, image, build);
    if (found?.record.state !== "deleting") return false;
    const below = await pathsBeneath(context, paths.imageBuild(image, build), held.contender);
    if (below === undefined) return false;
    await tree.commit([
      ...below.map((path) => ({ op: "delete" as const, path })),
      { op: "delete", path: paths.imageBuild(image, build), version: found.version },
    ]);
    context.log.info({ image, build }, "deleted a build");
    return true;
  });
  return did(outcome);
}

/**
 * Everything beneath a path, the deepest first; undefined while a record, or a lock that is not our `contender`, is there. What was
 * always empty is no record, but what a lock left of one (docs/contract/locks.md, "Ghost paths").
 */
export async function pathsBeneath(
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

/** Deletes an upload in the cloud. One that nobody finished stays as a failure; any other record goes. */
async function endUpload(
  context: BuilderContext,
  image: string,
  { build, provider: name, upload, do: what }: UploadEnd,
  held: Held,
  signal: AbortSignal,
): Promise<boolean> {
  const { tree, installation, log } = context;
  const provider = context.providers.get(name);
  const path = paths.imageUpload(image, build, name, upload);
  const found = await orUndefined(tree.get(path));
  if (provider === undefined || found === undefined || found.data.length === 0) return false;
  const record = heldUpload(context, held, path, decodeImageUpload(upload, found.data), found.stat.version);
  const abandoned = what === "settle-upload";
  if (abandoned !== (record.record.state === "uploading")) return false;
  if (!abandoned && record.record.state !== "deleting") await record.write({ state: "deleting" });
  const tag = { installation, provider: name, image, buildId: build, uploadId: upload };
  await removeFromCloud(context, provider, held, tag, externalIdOf(record.record.externalId), signal);
  const about = { image, build, provider: name, upload };
  if (abandoned) {
    await record.write({ state: "failed", externalId: null });
    log.warn(about, "marked an upload as failed: its builder is gone");
    return true;
  }
  await tree.commit([
    { op: "delete", path: held.contender },
    { op: "delete", path: held.parent },
    { op: "delete", path, version: record.version },
  ]);
  log.info(about, "deleted an upload");
  return true;
}

async function readBuild({ tree }: BuilderContext, image: string, build: string) {
  const path = paths.imageBuild(image, build);
  await tree.sync(path);
  const found = await orUndefined(tree.get(path));
  if (found === undefined || found.data.length === 0) return undefined;
  return { record: decodeImageBuild(build, found.data), version: found.stat.version };
}
