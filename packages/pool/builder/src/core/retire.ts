import type { ImageBuildRecord } from "@nodeyard/model";
import { isResumable, type UploadAtBuild } from "./uploads.ts";
import { failuresInARow, newestFirst, timeOf } from "./when.ts";

/** How many ready builds of an image stay, and how many ready uploads at each provider: the newest, and one to go back to. */
const KEEP = 2;
/** Failed records that stay as the memory of a back-off, at most; and for how long, milliseconds. */
const KEEP_FAILED = 8;
const FAILED_MS = 24 * 3_600_000;

/** What the end of one image's builds and uploads depends on. From one view, so that all parts are of one moment. */
export interface RetireFacts {
  /** Milliseconds of tree time. */
  readonly now: number;
  /** Whether this builder's configuration has the image. */
  readonly configured: boolean;
  readonly builds: readonly ImageBuildRecord[];
  readonly uploads: readonly (UploadAtBuild & { readonly provider: string })[];
  /** Providers of this builder that manage images, and whether they list this one. Others' uploads are left alone. */
  readonly providers: ReadonlyMap<string, boolean>;
  /** The build on trial: it stands for no proven one, and serves where there is no other. */
  readonly candidate: string | null;
  /** Builds that failed their trial: nothing is launched of them. */
  readonly rejected: ReadonlySet<string>;
  /** Uploads that a node boots or booted from, by `<build>/<provider>/<number>`. */
  readonly used: ReadonlySet<string>;
}

/** One step towards an end. Each is a step of its own, because another builder may carry out the next one. */
export type Retirement =
  /** Marked, deleted in the cloud, then removed. */
  | {
      readonly do: "delete-upload";
      readonly build: string;
      readonly provider: string;
      readonly upload: string;
    }
  /** No builder uploads it any more, because its lock is free: the upload is given up. */
  | {
      readonly do: "settle-upload";
      readonly build: string;
      readonly provider: string;
      readonly upload: string;
    }
  /** No builder builds it any more, because the image's build lock is free: the build has failed. */
  | { readonly do: "settle-build"; readonly build: string }
  /** Marked `deleting`: its host removes the files. */
  | { readonly do: "delete-build"; readonly build: string }
  /** Nothing is left of it but its record. */
  | { readonly do: "remove-build"; readonly build: string };

/** Names an upload of one image; its number alone is unique only within its build and provider. */
export function uploadKey(build: string, provider: string, upload: string): string {
  return `${build}/${provider}/${upload}`;
}

/**
 * The deletions of one pass for an image (docs/contract/builder.md, "Retirement"). Each is checked again under its lock. Pure;
 * the same facts give the same answer in every builder.
 */
export function retire(facts: RetireFacts): readonly Retirement[] {
  const keep = { builds: new Set(keptBuilds(facts)), uploads: recentUploads(facts) };
  return facts.builds.flatMap((build) => {
    const own = facts.uploads.filter((upload) => upload.build === build.id);
    const ends = own.flatMap((upload) => endOfUpload(facts, keep, build, upload) ?? []);
    return [...ends, ...endOfBuild(keep, build, own)];
  });
}

/** What stays: ids of builds, and keys of uploads. */
interface Keep {
  readonly builds: ReadonlySet<string>;
  /** Keys. */
  readonly uploads: ReadonlySet<string>;
}

/** Undefined: the upload stays as it is. */
function endOfUpload(
  facts: RetireFacts,
  keep: Keep,
  build: ImageBuildRecord,
  { provider, record }: RetireFacts["uploads"][number],
): Retirement | undefined {
  // A provider that this builder does not know may be another's.
  if (!facts.providers.has(provider)) return undefined;
  const at = { build: build.id, provider, upload: record.id };
  const key = uploadKey(build.id, provider, record.id);
  switch (record.state) {
    case "deleting":
      return { do: "delete-upload", ...at };
    case "uploading":
      // The host of the build carries it on.
      if (!isUnwanted(facts, provider) && keep.builds.has(build.id) && isResumable(record, facts.now))
        return undefined;
      return { do: "settle-upload", ...at };
    case "failed":
      return isUnwanted(facts, provider) || isSpent(facts, build, at)
        ? { do: "delete-upload", ...at }
        : undefined;
    case "ready": {
      const stays = build.state !== "deleting" && (keep.builds.has(build.id) || keep.uploads.has(key));
      const leaves = isUnwanted(facts, provider) || !stays;
      return leaves && !facts.used.has(key) ? { do: "delete-upload", ...at } : undefined;
    }
  }
}

/** Whether no upload of the image to this provider is wanted any more. */
function isUnwanted({ configured, providers }: RetireFacts, provider: string): boolean {
  return !configured || providers.get(provider) === false;
}

/** A build goes after its uploads: the record is what leads to them. */
function endOfBuild(keep: Keep, build: ImageBuildRecord, own: RetireFacts["uploads"]): readonly Retirement[] {
  if (build.state === "building") return [{ do: "settle-build", build: build.id }];
  if (build.state === "deleting") return own.length === 0 ? [{ do: "remove-build", build: build.id }] : [];
  if (keep.builds.has(build.id)) return [];
  return own.every(({ record }) => record.state === "deleting")
    ? [{ do: "delete-build", build: build.id }]
    : [];
}

/** The newest ready builds, and the failed ones that are remembered. */
function keptBuilds({ configured, builds, now, candidate, rejected }: RetireFacts): readonly string[] {
  if (!configured) return [];
  const all = newestFirst(builds).filter(({ state }) => state === "ready");
  const ready = all.filter(({ id }) => id !== candidate && !rejected.has(id));
  const failed = failuresInARow(builds, now).filter((build) => now - timeOf(build) < FAILED_MS);
  // The newest whatever it is worth: the next build is due by its age.
  return [...all.slice(0, 1), ...ready.slice(0, KEEP), ...failed.slice(0, KEEP_FAILED)].map(({ id }) => id);
}

/**
 * The newest ready uploads at each provider, of whatever build: what a provider boots is not taken away from it. Where no proven
 * build has one, it boots the one on trial.
 */
function recentUploads({
  builds,
  uploads,
  providers,
  candidate,
  rejected,
}: RetireFacts): ReadonlySet<string> {
  const serving = builds.filter(({ state, id }) => state === "ready" && !rejected.has(id));
  const ready = new Set(serving.map(({ id }) => id));
  const keys: string[] = [];
  for (const provider of providers.keys()) {
    const own = uploads.filter(
      (at) => at.provider === provider && at.record.state === "ready" && ready.has(at.build),
    );
    const proven = own.filter(({ build }) => build !== candidate);
    const newest = (proven.length > 0 ? proven : own).sort(
      (a, b) =>
        timeOf(b.record) - timeOf(a.record) || (a.build + a.record.id < b.build + b.record.id ? 1 : -1),
    );
    keys.push(...newest.slice(0, KEEP).map(({ build, record }) => uploadKey(build, provider, record.id)));
  }
  return new Set(keys);
}

/** A failed upload is the memory of its back-off until one succeeds, the build is no longer the newest, or it is old. */
function isSpent(
  { builds, uploads, now }: RetireFacts,
  build: ImageBuildRecord,
  at: { readonly provider: string; readonly upload: string },
): boolean {
  const [newest] = newestFirst(builds.filter(({ state }) => state === "ready"));
  if (newest?.id !== build.id) return true;
  const same = uploads.filter((one) => one.build === build.id && one.provider === at.provider);
  if (same.some(({ record }) => record.state === "ready")) return true;
  const failed = newestFirst(
    same.filter(({ record }) => record.state === "failed").map(({ record }) => record),
  );
  const rank = failed.findIndex(({ id }) => id === at.upload);
  return rank >= KEEP_FAILED || now - timeOf(failed[rank]!) >= FAILED_MS;
}
