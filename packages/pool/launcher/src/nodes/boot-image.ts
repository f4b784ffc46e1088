import type { ExternalId, LabelConfig } from "@nodeyard/driver";
import { type Canary, canaryPath, decodeCanary, type NodePatch, paths } from "@nodeyard/model";
import { isDrawn, NodeyardError } from "@nodeyard/runtime";
import { type ImageUploadEntry, isNewer, type View } from "@nodeyard/view";
import type { Handles, ServingPool } from "../handles.ts";

/**
 * The image that a launch was planned with has no ready upload any more; the launch is planned again. It counts as no failure of the
 * label or the image.
 */
export class ImageGone extends NodeyardError {
  constructor(image: string, provider: string) {
    super("launcher.image_gone", `diskimage ${image} has no ready upload at provider ${provider} any more`);
  }
}

/** What a launch boots, and what the record says of it. */
export interface BootImage {
  /** Null where the cloud knows the image by the name that the label gives, and for labels without one. */
  readonly externalId: ExternalId | null;
  /** What is written into the node's record: `image_id` is the path of the upload, or the cloud image's name, and how to log in. */
  readonly patch: Pick<NodePatch, "imageId" | "username" | "pythonPath" | "shellType">;
}

/**
 * The ready upload that a launch boots of a label's diskimage at the moment (docs/contract/records.md, "Image upload"), or its
 * cloud image. How to log in is what the image was built with, as its upload says; what that leaves open is the label's. Throws
 * ImageGone.
 */
export function bootImage(
  { view }: Pick<Handles, "view">,
  pool: ServingPool,
  label: LabelConfig,
  launch: LaunchKey,
): BootImage {
  const { connection, image } = label;
  const { username, pythonPath, shellType } = connection;
  if (image?.kind !== "diskimage") {
    return { externalId: null, patch: { imageId: image?.name ?? null, username, pythonPath, shellType } };
  }
  const provider = pool.open.config.name;
  const found = chooseUpload(view, image.name, provider, launch);
  if (found === undefined) throw new ImageGone(image.name, provider);
  const { build, record } = found;
  return {
    externalId: record.externalId as ExternalId | null,
    patch: {
      imageId: paths.imageUpload(image.name, build, provider, record.id),
      username: record.username ?? username,
      pythonPath: record.pythonPath ?? pythonPath,
      shellType: record.shellType ?? shellType,
    },
  };
}

/** The facts of a launch that decide which upload it boots. */
interface LaunchKey {
  /** Its digits decide whether the launch tries a build on trial, so all launchers would decide the same for one node. */
  readonly nodeId: string;
  /** From 1. */
  readonly attempt: number;
}

/**
 * The upload that a launch boots: the newest ready one. A build on trial gets only its share of launches, and a build that was rolled
 * back is used only when there is no other. A repeated try of a launch boots a proven build.
 */
export function chooseUpload(
  { images, own }: Pick<View, "images" | "own">,
  image: string,
  provider: string,
  launch: LaunchKey,
): ImageUploadEntry | undefined {
  const newest = images.get(image)?.ready.get(provider);
  const canary = canaryIn(own, image);
  // The usual case: no trial, so the view's own choice counts.
  if (newest === undefined || canary === undefined) return newest;
  const ready = [...images.uploads(image)].filter(
    (upload) => upload.provider === provider && upload.record.state === "ready",
  );
  // The proven build. A rolled back one is no candidate and not stable, and so is launched only when nothing else is ready.
  const stable = newestOf(
    ready.filter(({ build }) => build !== canary.candidate && !canary.rejected.includes(build)),
  );
  const candidate = newestOf(ready.filter(({ build }) => build === canary.candidate));
  const tries = launch.attempt === 1 && isDrawn(Number(launch.nodeId), canary.share);
  return (tries ? (candidate ?? stable) : (stable ?? candidate)) ?? newest;
}

/** The trial of an image. Undefined for an image without one, and where its record cannot be read: then the newest build is launched. */
export function canaryIn(own: View["own"], image: string): Canary | undefined {
  const entry = own.get(canaryPath(image));
  if (entry === undefined) return undefined;
  try {
    return decodeCanary(image, entry.data);
  } catch {
    // The builder of the image reports it.
    return undefined;
  }
}

function newestOf(uploads: readonly ImageUploadEntry[]): ImageUploadEntry | undefined {
  return uploads.reduce<ImageUploadEntry | undefined>(
    (best, one) => (best === undefined || isNewer(one, best) ? one : best),
    undefined,
  );
}
