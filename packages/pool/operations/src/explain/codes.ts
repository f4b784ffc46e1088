/**
 * Why a builder builds an image now, or does not. Codes are part of `--json` and are never renamed; texts may change. A builder
 * reports codes, and who asks has the texts: so an old builder is explained in the words of this release.
 */
const buildCodes = {
  "image.building": "It is being built",
  "image.due": "A build is due, and no build worker of this builder is free",
  "image.put-off": "It is due, and could not begin",
  "image.fresh": "Its newest build is not old enough for another",
  "image.back-off": "Its last builds failed: the pause doubles with each, six tries at most in an hour",
  "image.paused": "Its builds are paused",
  "image.no-formats": "It is not needed: no provider lists it, and it names no formats",
  "image.not-configured": "This builder's configuration has no such diskimage",
} as const;

/** Why a builder uploads an image to a provider now, or does not. */
export const uploadCodes = {
  "upload.uploading": "It is being uploaded",
  "upload.due": "It is due, and no upload worker of this builder is free",
  "upload.put-off": "It is due, and could not begin",
  "upload.done": "The provider has the newest build that this builder can give it",
  "upload.back-off": "The last uploads of this build failed: the pause doubles with each",
  "upload.paused": "The configuration pauses uploads to this provider",
  "upload.no-build": "There is no ready build",
  "upload.elsewhere": "The files of the newest build are on another builder's host",
  "upload.no-format": "The build has no file in a format that the provider takes",
  "upload.closed": "The provider could not be opened; the builder retries with growing pauses",
} as const;

/** A code of the image, by a builder. */
export type BuildCode = keyof typeof buildCodes;
/** A code of its upload to a provider, by a builder. */
export type UploadCode = keyof typeof uploadCodes;

/** Why an image is not built now, beside what a builder says. */
export const imageCodes = {
  ...buildCodes,
  "image.not-configured": "No builder that answered has it in its configuration",
  "image.unasked": "A builder is registered, but none has answered",
  "image.no-builder": "No builder is registered",
} as const;

/** A code of the image, all builders together. */
export type ImageCode = keyof typeof imageCodes;

/** What happens next to its builds, as a sentence each. */
export const imageNext: Readonly<Record<ImageCode, string>> = {
  "image.building": "When the build ends, its record becomes ready or failed, and uploads start.",
  "image.due": "It is built as soon as a build worker of that builder is free.",
  "image.put-off": "It is retried automatically.",
  "image.fresh": 'It is built at its age, or at once by "nodeyard image-build".',
  "image.back-off":
    'It is retried automatically. The log of the failed build says what to fix; "nodeyard image-build" retries at once.',
  "image.paused":
    'Nothing, until "nodeyard image-unpause", or until "pause" is removed from the configuration; requests wait.',
  "image.no-formats": "Nothing, until a provider lists it in its diskimages, or it names formats.",
  "image.not-configured":
    "Nothing, until a builder's configuration has it; until then builders delete its builds.",
  "image.unasked": "That builder is not Nodeyard's, or does not answer; it builds by its own rules.",
  "image.no-builder": 'Nothing, until a builder runs: "nodeyard builder", or "nodeyard up".',
};

/**
 * Why no pool would serve a request for a label now, in addition to the reasons that pools give. Judged from the registry and the
 * answers together.
 */
export const labelCodes = {
  "label.unknown": "No pool that is registered or configured offers it",
  "label.declined": "Every pool that offers it would decline",
  "label.unasked": "Pools offer it, but nobody who serves them has answered",
} as const;
