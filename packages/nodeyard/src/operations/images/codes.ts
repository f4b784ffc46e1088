/** Why a builder does not build an image now, or does. */
export const buildCodes = {
  "image.building": "It is being built",
  "image.due": "A build is due, and no build worker of this builder is free",
  "image.put-off": "It is due, and could not begin",
  "image.fresh": "Its newest build is not old enough for another",
  "image.back-off": "Its last builds failed: the pause doubles with each, six tries at most in an hour",
  "image.paused": "Its builds are paused",
  "image.no-formats": "It is not needed: no provider lists it, and it names no formats",
  "image.not-configured": "This builder's configuration has no such diskimage",
} as const;

/** Why a builder does not upload an image to a provider now, or does. */
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

export type BuildCode = keyof typeof buildCodes;
export type UploadCode = keyof typeof uploadCodes;
