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
  "image.building": "When it ends, its record says ready or failed, and uploads begin.",
  "image.due": "It is built as soon as a worker of that builder has ended what it builds now.",
  "image.put-off": "It is tried again by itself.",
  "image.fresh": 'It is built at its age, or at once by "nodeyard image-build".',
  "image.back-off":
    'It is tried again by itself; mend it by the log of the failed build, and "nodeyard image-build" goes round the wait.',
  "image.paused":
    'Nothing, until "nodeyard image-unpause", or until "pause" is taken out of the configuration; requests wait.',
  "image.no-formats": "Nothing, until a provider lists it in its diskimages, or it names formats.",
  "image.not-configured":
    "Nothing, until a builder's configuration has it; without it builders take its builds away.",
  "image.unasked": "That builder is of another kind, or stuck; it builds by its own rules.",
  "image.no-builder": 'Nothing, until a builder runs: "nodeyard builder", or "nodeyard up".',
};
