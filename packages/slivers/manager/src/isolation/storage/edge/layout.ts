import { createHash } from "node:crypto";
import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { whole } from "@nodeyard/runtime";
import { z } from "zod";
import { ImageError } from "../../../errors.ts";
import { readJson } from "../../../read-json.ts";

/** Bytes of an index or a manifest; real ones have some thousand. */
const MOST = 1_048_576;
/** An index may name an index (one for each platform); more than these follow each other nowhere. */
const DEPTH = 4;
/** As many as overlayfs takes, so no builder makes more. */
const LAYERS = 127;
/** Annotation of a descriptor with its tag (OCI image-spec, annotations.md). */
const REF_NAME = "org.opencontainers.image.ref.name";
/** What tar reads; encrypted and foreign layers are not. */
const LAYER =
  /^application\/vnd\.(?:oci\.image\.layer\.v1|docker\.image\.rootfs\.diff)\.tar(?:[.+](?:gzip|zstd))?$/;

const descriptor = z.object({
  mediaType: z.string().max(255),
  digest: z.string().regex(/^sha256:[0-9a-f]{64}$/, "must be a sha256 digest"),
  size: z.number().int().min(0).max(Number.MAX_SAFE_INTEGER),
  platform: z.object({ os: z.string(), architecture: z.string() }).optional(),
  annotations: z.record(z.string(), z.string()).optional(),
});
const index = z.object({ manifests: z.array(descriptor).min(1).max(1000) });
/** Other members, such as the configuration of a process, mean nothing for a sliver. */
const manifest = z.object({ layers: z.array(descriptor).min(1).max(LAYERS) });
const either = z.union([index, manifest], "must be an index or a manifest of an image");

type Descriptor = z.output<typeof descriptor>;

/** An image of an OCI layout: its manifest's digest in hexadecimal, and its layers, the lowest first. */
export interface LayoutImage {
  readonly digest: string;
  readonly layers: readonly { readonly file: string; readonly sha256: string }[];
}

/** Architectures as images name them, by what Node calls them. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: "amd64", ia32: "386" };

/**
 * The image of this machine's platform in an OCI layout (image-spec, image-layout.md); `tag`: which one, where there are several. Indexes and
 * manifests are what their digests say; layers have the size that the manifest says, and their digests are still to be compared. No link is
 * followed, and nothing but regular files is opened. Throws ImageError.
 */
export async function readLayout(folder: string, tag?: string): Promise<LayoutImage> {
  const fail = (what: string, cause?: unknown) => new ImageError(`${folder}: ${what}`, { cause });
  const parsed = <T>(schema: z.ZodType<T>, name: string, text: string) =>
    readJson(schema, text, (what, cause) => fail(`${name}${what}`, cause));
  const blob = async ({ digest, size }: Descriptor) => {
    const hex = digest.slice("sha256:".length);
    for (const part of ["blobs", "blobs/sha256"])
      if (!(await lstat(join(folder, part)).catch(() => undefined))?.isDirectory())
        throw fail(`${part} is not a folder`);
    return { hex, size, file: join(folder, "blobs/sha256", hex) };
  };
  let { manifests } = parsed(index, "index.json", await textOf(join(folder, "index.json"), fail));
  if (tag !== undefined) manifests = manifests.filter(({ annotations }) => annotations?.[REF_NAME] === tag);
  for (let depth = 0; depth < DEPTH; depth++) {
    const at = await blob(chosen(manifests, fail));
    const text = await textOf(at.file, fail);
    if (createHash("sha256").update(text).digest("hex") !== at.hex)
      throw fail(`${at.hex} has another sha256 than its name says`);
    const read = parsed(either, at.hex, text);
    if ("layers" in read) {
      const layers: { file: string; sha256: string }[] = [];
      for (const layer of read.layers) {
        if (!LAYER.test(layer.mediaType))
          throw fail(`layer ${layer.digest} is ${layer.mediaType}: not a tar`);
        const { hex, size, file } = await blob(layer);
        const info = await lstat(file).catch(() => undefined);
        if (info?.isFile() !== true || info.size !== size)
          throw fail(`layer ${layer.digest} is not a file of ${size} bytes`);
        layers.push({ file, sha256: hex });
      }
      return { digest: at.hex, layers };
    }
    manifests = read.manifests;
  }
  throw fail(`indexes name each other, more than ${DEPTH} deep`);
}

/** The one descriptor for this machine. Several with the same digest are one image under several tags. */
function chosen(all: readonly Descriptor[], fail: (what: string) => ImageError): Descriptor {
  const architecture = ARCHITECTURES[process.arch] ?? process.arch;
  const fits = all.filter(
    ({ platform }) =>
      platform === undefined || (platform.os === "linux" && platform.architecture === architecture),
  );
  const digests = new Set(fits.map(({ digest }) => digest));
  if (digests.size === 1) return fits[0]!;
  const names = [...new Set(all.map(({ annotations }) => annotations?.[REF_NAME] ?? "without a tag"))];
  throw fail(
    digests.size === 0
      ? `there is no image for linux/${architecture} with that tag; name another tag, or bring one`
      : `there are ${digests.size} images (${names.slice(0, 5).join(", ")}); name one by its tag`,
  );
}

/** Reads a small file. No link is followed, a pipe does not block, and never more than MOST is read. */
async function textOf(path: string, fail: (what: string) => ImageError): Promise<string> {
  const text = await whole(path, MOST);
  if (text === undefined) throw fail(`${path} is not a file of at most ${MOST} bytes`);
  return text;
}
