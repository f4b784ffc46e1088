import type { ExternalId, LabelConfig } from "@nodeyard/driver";
import { type NodePatch, paths } from "@nodeyard/model";
import { NodeyardError } from "@nodeyard/runtime";
import type { Context, ServingPool } from "../context.ts";
import { chooseUpload, type LaunchKey } from "./choose-upload.ts";

/** The image that a launch was planned with has no ready upload any more; the launch is planned again. */
export class ImageGone extends NodeyardError {
  constructor(image: string, provider: string) {
    super("launcher.image_gone", `diskimage ${image} has no ready upload at provider ${provider} any more`);
  }
}

/** What a launch boots, and what the record says of it. */
export interface BootImage {
  /** Null where the cloud knows the image by the name that the label gives, and for labels without one. */
  readonly externalId: ExternalId | null;
  readonly patch: Pick<NodePatch, "imageId" | "username" | "pythonPath" | "shellType">;
}

/**
 * The ready upload that a launch boots of a label's diskimage at the moment (docs/contract/records.md, "Image upload"), or its
 * cloud image. How to log in is what the image was built with, as its upload says; what that leaves open is the label's. Throws
 * ImageGone.
 */
export function bootImage(
  { view }: Pick<Context, "view">,
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
