import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { patient } from "../../../../../testing/patience.ts";
import { isolationSchema } from "../../src/isolation/lxc/options.ts";
import {
  Archives,
  archiveName,
  debianCommand,
  IMAGE_NAME,
} from "../../src/isolation/storage/edge/archives.ts";
import { ImageNames } from "../../src/isolation/storage/edge/image-names.ts";
import { imagesInUse, readData, readSubvolumes } from "../../src/isolation/storage/edge/subvolume-list.ts";

const digest = (letter: string) => letter.repeat(64);
const LIST = `ID 257 gen 10 top level 5 parent_uuid -                                    uuid 0d2f-1 path images/${digest("a")}
ID 258 gen 11 top level 5 parent_uuid -                                    uuid 0d2f-2 path images/${digest("b")}
ID 259 gen 12 top level 5 parent_uuid 0d2f-1                               uuid 0d2f-3 path slivers/ny-1.1
ID 260 gen 13 top level 5 parent_uuid 0d2f-9                               uuid 0d2f-4 path slivers/ny-2.2
ID 261 gen 13 top level 259 parent_uuid -                                  uuid 0d2f-5 path slivers/ny-1.1/a name with path in it
`;

describe("which images are in use", () => {
  test("those that something is a copy of", () => {
    const all = readSubvolumes(LIST);
    expect(all.map(({ id }) => id)).toEqual([257, 258, 259, 260, 261]);
    expect(all.map(({ path }) => path)).toEqual([
      `images/${digest("a")}`,
      `images/${digest("b")}`,
      "slivers/ny-1.1",
      "slivers/ny-2.2",
      "slivers/ny-1.1/a name with path in it",
    ]);
    expect([...imagesInUse(all)]).toEqual([digest("a")]);
    expect(imagesInUse(readSubvolumes(""))).toEqual(new Set());
  });

  test("wherever in a larger file system the pool is, and never what only looks like an image", () => {
    const copy = { path: "x", uuid: "2", parent: "1" };
    const of = (path: string) => [...imagesInUse([{ path, uuid: "1" }, copy])];
    expect(of(`srv/pool/images/${digest("c")}`)).toEqual([digest("c")]);
    for (const path of [
      `images/${digest("c")}.new`,
      `images/${digest("c").slice(1)}`,
      `slivers/${digest("c")}`,
    ])
      expect(of(path), path).toEqual([]);
  });
});

describe("archives that are made here", () => {
  test("of a folder that does not exist: the image is at fault, and no further attempt helps", async () => {
    const cache = mkdtempSync(join(tmpdir(), "nodeyard-archives-"));
    try {
      const archives = new Archives({ cache, onProgress: () => {} });
      const folder = join(cache, "not-there");
      await expect(archives.ensure({ folder }, AbortSignal.timeout(patient(10_000)))).rejects.toMatchObject({
        code: "sliver.image",
        message: expect.stringContaining(`${folder} cannot be read: ENOENT`),
      });
    } finally {
      rmSync(cache, { recursive: true, force: true });
    }
  });

  test("have a name of their own for each source", () => {
    const names = [
      archiveName({ debian: "bookworm", packages: [] }),
      archiveName({ debian: "bookworm", packages: ["git"] }),
      archiveName({ debian: "trixie", packages: [] }),
      archiveName({ folder: "/srv/tree" }),
    ];
    expect(new Set(names).size).toBe(4);
    expect(archiveName({ debian: "bookworm", packages: [] })).toBe(names[0]);
    for (const name of names) expect(name).toMatch(/^(?:debian-[a-z]+-)?[0-9a-f]{16}\.tar$/);
  });

  test("hold what a sliver needs, and what was asked for", () => {
    expect(
      debianCommand({ debian: "trixie", packages: ["git"] }, "/c/x.tar", ["/etc/apt/sources.list"]),
    ).toEqual([
      "mmdebstrap",
      "--variant=minbase",
      "--include=openssh-server,iproute2,sudo,git",
      "trixie",
      "/c/x.tar",
      "/etc/apt/sources.list",
    ]);
  });

  test("an archive of the operator's may be bound to its digest", () => {
    const images = (sha256: string) =>
      isolationSchema.safeParse({ images: { a: { tar: "/srv/a.tar", sha256 } } });
    expect(images(digest("0")).success).toBe(true);
    for (const wrong of ["", digest("0").slice(1), digest("A"), `${digest("0")}\n`])
      expect(images(wrong).success, JSON.stringify(wrong)).toBe(false);
  });
});

describe("what a configuration says of images and the pool", () => {
  test("is refused with the words that may stand there", () => {
    const issues = (value: object) =>
      isolationSchema.safeParse(value).error?.issues.map((one) => `${one.path.join(".")} ${one.message}`);
    expect(issues({ pool: { size: 1 } })).toEqual([
      "pool must have bytes (268435456 at least) or folder, and nothing else",
    ]);
    expect(issues({ images: { ours: { tr: "/srv/ours.tar" } } })).toEqual([
      "images.ours must have tar (and sha256), folder, debian (and packages), oci (and tag) or registry (and authFile), and nothing else",
    ]);
    const ours = { ours: { tar: "/srv/ours.tar" } };
    expect(issues({ images: ours, defaultImage: "our" })).toEqual([
      "defaultImage is our, which is none of images (ours); name one of them, or add it there",
    ]);
    for (const defaultImage of ["ours", `sha256:${digest("a")}`])
      expect(issues({ images: ours, defaultImage })).toBeUndefined();
  });
});

describe("what slivers have of the pool", () => {
  test("is read with and without the path that newer programs print", () => {
    const text = `Qgroupid    Referenced    Exclusive   Path
--------    ----------    ---------   ----
0/5              16384        16384   <toplevel>
0/256         10502144        10486   slivers/ny-1.1
1/100               10           10   <0 member qgroups>
`;
    const own = new Map([
      [5, { all: 16_384, own: 16_384 }],
      [256, { all: 10_502_144, own: 10_486 }],
    ]);
    expect(readData(text)).toEqual(own);
    expect(
      readData(
        "qgroupid         rfer         excl \n--------         ----         ---- \n0/5  16384 16384 \n0/256 10502144 10486\n",
      ),
    ).toEqual(own);
  });
});

test("a name whose file a crash left unfinished keeps no image, and is none that an image can have", async () => {
  const folder = mkdtempSync(join(tmpdir(), "nodeyard-names-"));
  try {
    const names = new ImageNames(folder);
    await names.write("warm", { digest: digest("a"), from: "" });
    writeFileSync(join(folder, "warm.new"), `${digest("b")}\n\n`);
    expect(await names.list()).toEqual(["warm"]);
    await names.write("warm", { digest: digest("c"), from: "" });
    expect(await names.read("warm")).toEqual({ digest: digest("c"), from: "" });
    expect(["warm", "warm.2", "new", "warm.new"].filter((name) => IMAGE_NAME.test(name))).toEqual([
      "warm",
      "warm.2",
      "new",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
