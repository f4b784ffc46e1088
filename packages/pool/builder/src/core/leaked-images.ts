import { type ExternalId, type ImageTag, leaked, type Resource, type SweepContext } from "@nodeyard/driver";
import { uploadKey } from "./retire.ts";

/** An image in a cloud that carries a tag of Nodeyard and that no upload record knows. */
export interface AlienImage {
  readonly provider: string;
  readonly id: ExternalId;
  readonly tag: ImageTag;
  /** leaked: ours, and without a record. foreign: of another installation with a provider of this name. */
  readonly kind: "leaked" | "foreign";
}

/** A cloud image that carries our tag, whole. */
type Tagged = Resource & { readonly imageTag: ImageTag };

/**
 * Images of a provider that no upload stands for. `known` holds `uploadKey`s of all uploads to the provider, in whatever state,
 * read after `resources` was asked for. Pure.
 */
export function alienImages(
  provider: string,
  installation: string,
  resources: readonly Resource[],
  known: ReadonlySet<string>,
): readonly AlienImage[] {
  return tagged(resources, provider)
    .filter(({ imageTag }) => imageTag.installation !== installation || !known.has(keyOf(imageTag)))
    .map(({ id, imageTag: tag }) => {
      return { provider, id, tag, kind: tag.installation === installation ? "leaked" : "foreign" };
    });
}

/** What a sweep deletes, with the rules and the brake of `leaked`: an upload stands where a node stands there. */
export function leakedImages(
  resources: readonly Resource[],
  known: ReadonlySet<string>,
  context: SweepContext,
): {
  readonly suspects: ReadonlySet<string>;
  readonly remove: readonly ImageTag[];
  readonly braked: boolean;
  readonly wouldRemove: number;
} {
  const images = tagged(resources, context.provider).map((image) => {
    const { installation, provider } = image.imageTag;
    return { ...image, tag: { installation, provider, pool: "", nodeId: keyOf(image.imageTag) } };
  });
  const sweep = leaked(images, known, context);
  const remove = images.filter((image) => sweep.remove.includes(image)).map(({ imageTag }) => imageTag);
  return { ...sweep, remove };
}

/** Images with a tag of Nodeyard that names this provider: others are not looked at. */
function tagged(resources: readonly Resource[], provider: string): readonly Tagged[] {
  return resources.filter(
    (resource): resource is Tagged => resource.imageTag != null && resource.imageTag.provider === provider,
  );
}

function keyOf({ buildId, uploadId, provider }: ImageTag): string {
  return uploadKey(buildId, provider, uploadId);
}
