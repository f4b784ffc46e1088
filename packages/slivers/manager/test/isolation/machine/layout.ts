import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { type TarMember, tarOf } from "./tar.ts";

const OCI = "application/vnd.oci.image";
const COMPRESSED = {
  "": (bytes: Buffer) => bytes,
  "+gzip": gzipSync,
  "+zstd": zstdCompressSync,
} as const;

/** A layer: its members, and how they are packed. */
export interface TestLayer {
  readonly members: readonly TarMember[];
  readonly packed?: keyof typeof COMPRESSED;
}

export function packLayer({ members, packed = "" }: TestLayer): Buffer {
  return COMPRESSED[packed](tarOf(members));
}

/** A blob of a layout, and its descriptor. */
export function blob(folder: string, bytes: Buffer | object, mediaType: string) {
  const content = Buffer.isBuffer(bytes) ? bytes : Buffer.from(JSON.stringify(bytes));
  const hex = createHash("sha256").update(content).digest("hex");
  mkdirSync(join(folder, "blobs/sha256"), { recursive: true });
  writeFileSync(join(folder, "blobs/sha256", hex), content);
  return { mediaType, digest: `sha256:${hex}`, size: content.length };
}

/** Writes an OCI layout with one image for any platform and resolves to the digest of its manifest. */
export function writeLayout(folder: string, layers: readonly TestLayer[], tag = "latest"): string {
  const config = { architecture: "amd64", os: "linux", rootfs: { type: "layers", diff_ids: [] as string[] } };
  for (const { members } of layers)
    config.rootfs.diff_ids.push(`sha256:${createHash("sha256").update(tarOf(members)).digest("hex")}`);
  const manifest = {
    schemaVersion: 2,
    mediaType: `${OCI}.manifest.v1+json`,
    config: blob(folder, config, `${OCI}.config.v1+json`),
    layers: layers.map((one) => blob(folder, packLayer(one), `${OCI}.layer.v1.tar${one.packed ?? ""}`)),
  };
  const at = blob(folder, manifest, manifest.mediaType);
  writeIndex(folder, [{ ...at, annotations: { "org.opencontainers.image.ref.name": tag } }]);
  return at.digest;
}

export function writeIndex(folder: string, manifests: readonly object[]): void {
  writeFileSync(join(folder, "oci-layout"), '{"imageLayoutVersion":"1.0.0"}');
  writeFileSync(join(folder, "index.json"), JSON.stringify({ schemaVersion: 2, manifests }));
}
