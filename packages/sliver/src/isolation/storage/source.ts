import { createHash } from "node:crypto";

/** Where a root comes from: an archive, a folder, or a Debian release that is made here once. */
export type ImageSource =
  | {
      readonly tar: string;
      /** What the archive must be, in hexadecimal; absent: whatever is there. */
      readonly sha256?: string | undefined;
    }
  | { readonly folder: string }
  | { readonly debian: string; readonly packages: readonly string[] };

/** Of an image that is asked for by what is in it: the digest of its archive. */
export const IMAGE_DIGEST = /^sha256:([0-9a-f]{64})$/;

/** What every image that is made here holds: a sliver without them cannot be logged in to, or not used. */
const ALWAYS = ["openssh-server", "iproute2", "sudo"];

/** Of an archive that is made here: equal sources share it. */
export function archiveName(source: Exclude<ImageSource, { readonly tar: string }>): string {
  const key = createHash("sha256").update(JSON.stringify(source)).digest("hex").slice(0, 16);
  return "debian" in source ? `debian-${source.debian}-${key}.tar` : `${key}.tar`;
}

/** Arguments that make a release's archive at `target`, from these files of apt sources. */
export function debianCommand(
  { debian, packages }: { readonly debian: string; readonly packages: readonly string[] },
  target: string,
  aptSources: readonly string[],
): [string, ...string[]] {
  const include = [...ALWAYS, ...packages].join(",");
  return ["mmdebstrap", "--variant=minbase", `--include=${include}`, debian, target, ...aptSources];
}
