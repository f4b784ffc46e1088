import { lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { requireRoot } from "../../../../../testing/skipped.ts";
import { unpackInJail } from "../../src/isolation/storage/edge/jail.ts";
import { packLayer, type TestLayer } from "./machine/layout.ts";
import type { TarMember } from "./machine/tar.ts";

const { signal } = new AbortController();

describe.skipIf(requireRoot())("layers of an image", () => {
  let folder: string;
  let root: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "nodeyard-layers-"));
    root = join(folder, "root");
    mkdirSync(root, { mode: 0o755 });
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  const unpacked = (...layers: readonly (TestLayer | readonly TarMember[])[]) => {
    const files = layers.map((one, at) => {
      const path = join(folder, `${at}`);
      writeFileSync(path, packLayer("members" in one ? one : { members: one }));
      return path;
    });
    return unpackInJail(files, root, signal);
  };
  const dir = (name: string, mode = 0o755): TarMember => ({ name, type: "5", mode });
  const file = (name: string, content = ""): TarMember => ({ name, content, mode: 0o644 });
  const there = (path = "") => readdirSync(join(root, path)).sort();

  test("lie over each other, however each is packed: what is upper hides, removes and empties", async () => {
    await unpacked(
      [
        dir("./"),
        dir("etc"),
        file("etc/a", "low"),
        file("etc/b"),
        dir("full"),
        file("full/x"),
        file("full/y"),
      ],
      { members: [file("etc/.wh.b"), file("etc/a", "high"), file("etc/c")], packed: "+gzip" },
      { members: [dir("full"), file("full/.wh..wh..opq"), file("full/z")], packed: "+zstd" },
    );
    expect(there()).toEqual(["etc", "full"]);
    expect(there("etc")).toEqual(["a", "c"]);
    expect(readFileSync(join(root, "etc/a"), "utf8")).toBe("high");
    expect(there("full")).toEqual(["z"]);
  });

  test("a whiteout hides what is below it, not what its own layer has under that name", async () => {
    await unpacked([dir("a"), file("a/old")], [file(".wh.a"), dir("a"), file("a/new")]);
    expect(there("a")).toEqual(["new"]);
  });

  test("files, folders and links take each other's place", async () => {
    await unpacked(
      [dir("d"), file("d/in"), file("f"), { name: "l", type: "2", link: "d" }, dir("e"), file("e/in")],
      [
        file("d", "file"),
        dir("f"),
        file("f/in"),
        dir("l"),
        file("l/in"),
        { name: "e", type: "2", link: "f" },
      ],
    );
    expect(readFileSync(join(root, "d"), "utf8")).toBe("file");
    expect([there("f"), there("l"), there("e")]).toEqual([["in"], ["in"], ["in"]]);
    expect(lstatSync(join(root, "l")).isDirectory()).toBe(true);
    expect(lstatSync(join(root, "e")).isSymbolicLink()).toBe(true);
  });

  test("a folder that a layer only passes through keeps its mode; a new one is made as usual", async () => {
    await unpacked(
      [dir("./", 0o711), dir("tmp", 0o1777), dir("secret", 0o700)],
      [file("tmp/a"), file("secret/b"), file("new/c"), dir("said", 0o750)],
    );
    const mode = (path: string) => lstatSync(join(root, path)).mode & 0o7777;
    expect([".", "tmp", "secret", "new", "said"].map(mode)).toEqual([0o711, 0o1777, 0o700, 0o755, 0o750]);
  });

  test("odd names, and set-uid, hard links and modes of files survive the merge", async () => {
    await unpacked(
      [dir("odd"), file("odd/a\nb"), file("odd/ c"), file("odd/-rf")],
      [
        file("odd/.wh.a\nb"),
        file("odd/.wh. c"),
        file("odd/.wh.-rf"),
        { name: "odd/su", mode: 0o4755, content: "x" },
        { name: "odd/again", type: "1", link: "odd/su" },
      ],
    );
    expect(there("odd")).toEqual(["again", "su"]);
    expect(lstatSync(join(root, "odd/su")).mode & 0o7777).toBe(0o4755);
    expect(lstatSync(join(root, "odd/su")).ino).toBe(lstatSync(join(root, "odd/again")).ino);
  });

  const hostile: Readonly<Record<string, readonly TarMember[]>> = {
    "a whiteout of ..": [dir("etc"), file("etc/.wh...")],
    "a whiteout of nothing": [file(".wh.")],
    "the place where layers are merged": [dir(".nodeyard-layer"), file(".nodeyard-layer/x")],
    "a link to the place where layers are merged": [{ name: ".nodeyard-layer", type: "2", link: "/" }],
    "a hard link out": [{ name: "a", type: "1", link: "../../../archives/100" }],
    "what is no archive of its kind": [
      { name: "x", content: "x".repeat(2000), type: "9" as "0" },
      file(".."),
    ],
  };
  test.each(Object.entries(hostile))("%s is refused", async (_, members) => {
    await expect(unpacked([dir("etc"), file("etc/a")], members)).rejects.toMatchObject({
      code: "sliver.command",
    });
  });

  test("nothing is written or removed through a link of a layer below", async () => {
    const outside = join(folder, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "kept"), "kept");
    await unpacked(
      [
        { name: "up", type: "2", link: "../outside" },
        { name: "there", type: "2", link: outside },
        { name: "in", type: "2", link: "/usr" },
        dir("real"),
        file("real/kept"),
        { name: "near", type: "2", link: "real" },
      ],
      [file("up/.wh.kept"), file("there/made"), file("in/.wh.bin"), file("near/.wh.kept")],
    );
    expect(readdirSync(outside)).toEqual(["kept"]);
    expect(there("there")).toEqual(["made"]);
    expect(there("real")).toEqual(["kept"]);
  });

  test("devices, FIFOs and host keys of any layer are left out", async () => {
    await unpacked(
      [dir("dev"), dir("etc"), dir("etc/ssh")],
      [
        { name: "dev/null", type: "3", device: [1, 3] },
        { name: "dev/pipe", type: "6" },
        file("etc/ssh/ssh_host_rsa_key"),
      ],
    );
    expect([there("dev"), there("etc/ssh")]).toEqual([[], []]);
  });
});
