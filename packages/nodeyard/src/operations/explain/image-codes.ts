import { buildCodes } from "../images/index.ts";

/** Why an image is not built now, beside what a builder says. */
export const imageCodes = {
  ...buildCodes,
  "image.not-configured": "No builder that answered has it in its configuration",
  "image.unasked": "A builder is registered, but none has answered",
  "image.no-builder": "No builder is registered",
} as const;

export type ImageCode = keyof typeof imageCodes;

/** What happens next to its builds. */
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
