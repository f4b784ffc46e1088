/** Names in `images-dir` and in the folder of logs (docs/contract/builder.md, "Files and logs"). */

/**
 * Of all files of a build, and in messages. Names of images may hold dashes; build ids are hexadecimal, so that both can be told
 * apart again.
 */
export function baseName(image: string, build: string): string {
  return `${image}-${build}`;
}

/** Where the log of a build is. */
export function logPath(folder: string, image: string, build: string): string {
  return `${folder}/${baseName(image, build)}.log`;
}

/**
 * Names that one build may have left: an image in some format, its sums, the folder of its manifest. The intent, which proves
 * whose they are, is not among them.
 */
export function isFileOf(base: string, name: string): boolean {
  if (name === `${base}.d`) return true;
  if (!name.startsWith(`${base}.`)) return false;
  return /^[A-Za-z0-9]+(\.(md5|sha256))?$/.test(name.slice(base.length + 1)) && name !== intentName(base);
}

/** The file of the intent. Removed last, so that a removal that was cut off is continued. */
export function intentName(base: string): string {
  return `${base}.build`;
}

/** The last dash before the hexadecimal id divides: names of images may hold dashes. */
const INTENT = /^(.+)-([0-9a-f]+)\.build$/;

/** Which build an intent is of; undefined for any other file. */
export function parseIntentName(
  name: string,
): { readonly image: string; readonly build: string } | undefined {
  const [, image, build] = INTENT.exec(name) ?? [];
  return image === undefined || build === undefined ? undefined : { image, build };
}

/** The name under which a file is written before it is renamed to `name`. */
export function draftName(name: string): string {
  return `${name}.new`;
}

/** Whether a file is the draft of an intent. */
export function isDraft(name: string): boolean {
  const intent = name.replace(/\.new$/, "");
  return intent !== name && parseIntentName(intent) !== undefined;
}

/** Formats of `base` among `names`: files with one suffix, without the folder of the manifest. */
export function formatsIn(base: string, names: readonly string[]): readonly string[] {
  return names
    .filter((name) => isFileOf(base, name) && name !== `${base}.d`)
    .map((name) => name.slice(base.length + 1))
    .filter((suffix) => !suffix.includes("."));
}

/**
 * Formats that `delete-after-upload` removes (docs/contract/builder.md, "Retirement"): those that the image does not keep and that no
 * provider still needs.
 */
export function formatsToPrune(facts: {
  readonly onDisk: readonly string[];
  readonly keepFormats: readonly string[];
  /** Formats of providers that list the image and have no ready upload of this build. */
  readonly awaited: readonly string[];
}): readonly string[] {
  return facts.onDisk.filter(
    (format) => !facts.keepFormats.includes(format) && !facts.awaited.includes(format),
  );
}

/** Logs to remove before a new one begins: of exactly this image, all but the newest `keep`. "debian-12" must not lose logs to "debian". */
export function logsToPrune(
  image: string,
  logs: readonly { readonly name: string; readonly mtimeMs: number }[],
  keep: number,
): readonly string[] {
  const own = logs.filter(
    ({ name }) => name.startsWith(`${image}-`) && /^[0-9a-f]+\.log$/.test(name.slice(image.length + 1)),
  );
  if (own.length <= keep) return [];
  return own
    .sort((a, b) => b.mtimeMs - a.mtimeMs || (a.name < b.name ? 1 : -1))
    .slice(keep)
    .map(({ name }) => name);
}

/** Bytes that must be free before a build: a fifth more than its predecessor took, at least 1 GiB where none is known. */
export function bytesNeeded(lastBuild: number | undefined): number {
  return lastBuild === undefined ? 2 ** 30 : Math.ceil(lastBuild * 1.2);
}
