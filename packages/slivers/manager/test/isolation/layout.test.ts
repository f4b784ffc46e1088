import { execFileSync } from "node:child_process";
import { mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isolationSchema } from "../../src/isolation/lxc/options.ts";
import { readLayout } from "../../src/isolation/storage/edge/layout.ts";
import { blob, type TestLayer, writeIndex, writeLayout } from "./machine/layout.ts";

const MANIFEST = "application/vnd.oci.image.manifest.v1+json";
const layer = (content: string): TestLayer => ({ members: [{ name: "a", content }] });

describe("an OCI layout", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-layout-"));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const hex = (digest: string) => digest.slice(7);
  const at = (digest: string) => join(folder, "blobs/sha256", hex(digest));
  const refused = (text: string, tag?: string) =>
    expect(readLayout(folder, tag)).rejects.toMatchObject({
      code: "sliver.image",
      message: expect.stringContaining(text),
    });

  test("has a digest and layers in their order", async () => {
    const digest = writeLayout(folder, [layer("1"), { ...layer("2"), packed: "+gzip" }]);
    const image = await readLayout(folder);
    expect(image.digest).toBe(hex(digest));
    expect(image.layers.map(({ file, sha256 }) => file === at(`sha256:${sha256}`))).toEqual([true, true]);
  });

  test("of several images the one with the tag, of several platforms this machine's", async () => {
    const [one, two] = ["1", "2"].map((content) => writeLayout(folder, [layer(content)], content));
    const named = (digest: string, tag: string) => ({
      mediaType: MANIFEST,
      digest,
      size: 1,
      annotations: { "org.opencontainers.image.ref.name": tag },
    });
    writeIndex(folder, [named(one!, "1"), named(two!, "2")]);
    expect((await readLayout(folder, "2")).digest).toBe(hex(two!));
    await refused("there are 2 images (1, 2); name one by its tag");
    await refused("no image for linux/", "3");
    const architecture = process.arch === "x64" ? "amd64" : process.arch;
    const inner = blob(
      folder,
      {
        manifests: [
          { mediaType: MANIFEST, digest: one, size: 1, platform: { os: "linux", architecture: "s390x" } },
          { mediaType: MANIFEST, digest: two, size: 1, platform: { os: "linux", architecture } },
          { mediaType: MANIFEST, digest: one, size: 1, platform: { os: "unknown", architecture: "unknown" } },
        ],
      },
      "application/vnd.oci.image.index.v1+json",
    );
    writeIndex(folder, [inner]);
    expect((await readLayout(folder)).digest).toBe(hex(two!));
  });

  test("whose manifest is not what its digest says is refused", async () => {
    writeFileSync(at(writeLayout(folder, [layer("1")])), '{"layers":[]}');
    await refused("has another sha256 than its name says");
  });

  test("that names what is no tar, no file, or no digest is refused, and no link is followed", async () => {
    const one = blob(folder, Buffer.from("x"), "application/vnd.oci.image.layer.v1.tar+encrypted");
    const of = (layers: readonly object[]) => writeIndex(folder, [blob(folder, { layers }, MANIFEST)]);
    of([one]);
    await refused("not a tar");
    const plain = { ...one, mediaType: "application/vnd.oci.image.layer.v1.tar" };
    of([{ ...plain, size: 2 }]);
    await refused("is not a file of 2 bytes");
    of([{ ...plain, digest: "sha256:../../../../etc/passwd" }]);
    await refused('layers.0.digest: is "sha256:../../../../etc/passwd", but must be a sha256 digest');
    rmSync(at(one.digest));
    symlinkSync("/etc/hostname", at(one.digest));
    of([plain]);
    await refused("is not a file of 1 bytes");
    renameSync(join(folder, "blobs"), join(folder, "moved"));
    symlinkSync("moved", join(folder, "blobs"));
    await refused("blobs is not a folder");
  });

  test("is read within bounds: a FIFO, a huge index, indexes without end, more layers than any builder makes", async () => {
    const index = join(folder, "index.json");
    execFileSync("mkfifo", [index]);
    await refused("is not a file of at most 1048576 bytes");
    rmSync(index);
    symlinkSync("/dev/zero", index);
    await refused("is not a file of at most 1048576 bytes");
    rmSync(index);
    writeFileSync(index, " ".repeat(1_048_577));
    await refused("is not a file of at most 1048576 bytes");
    writeFileSync(index, "[".repeat(100_000));
    await refused("is not valid JSON");
    let last = blob(folder, { manifests: [blob(folder, {}, MANIFEST)] }, MANIFEST);
    for (let depth = 0; depth < 5; depth++) last = blob(folder, { manifests: [last] }, MANIFEST);
    writeIndex(folder, [last]);
    await refused("indexes name each other");
    writeIndex(folder, [blob(folder, { layers: Array(128).fill(last) }, MANIFEST)]);
    await refused("but must be an index or a manifest");
  });

  test("what a configuration may name: a path and a tag, or a reference with a host", () => {
    const ok = (image: object) => isolationSchema.safeParse({ images: { a: image } }).success;
    for (const registry of [
      "docker.io/library/debian",
      "127.0.0.1:5000/a/b-c:1.2",
      `quay.example/x@sha256:${"0".repeat(64)}`,
    ])
      expect(ok({ registry }), registry).toBe(true);
    for (const registry of [
      "debian",
      "host/a b",
      "host/../a",
      "-x/a",
      "host/a:tag@sha256:0",
      "host/a --tls-verify=false",
      "http://host/a",
    ])
      expect(ok({ registry }), registry).toBe(false);
    expect(ok({ oci: "/srv/a", tag: "1" })).toBe(true);
    expect(ok({ oci: "srv/a" })).toBe(false);
  });
});
