import { execFileSync } from "node:child_process";
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { editHostile, replaceHostile } from "../../src/isolation/edge/files.ts";
import { fitImageRoot } from "../../src/isolation/lxc/edge/root-files.ts";
import { namesOf } from "../../src/isolation/lxc/names.ts";

/** More than libuv has threads: one that blocks in each would stop every read of the process. */
const ATTEMPTS = 8;

describe("a root that somebody hostile filled", { timeout: 20_000 }, () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "nodeyard-hostile-"));
    for (const folder of ["etc/sudoers.d", "home"]) mkdirSync(join(root, folder), { recursive: true });
    for (const file of ["passwd", "group", "shadow"]) writeFileSync(join(root, "etc", file), "root:x:0:\n");
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  const names = namesOf(7, "10.213");
  const fifo = (path: string) => {
    rmSync(path, { force: true });
    execFileSync("mkfifo", [path]);
  };
  const put: Readonly<Record<string, (path: string) => unknown>> = {
    "a FIFO": fifo,
    "a socket": async (path) => {
      rmSync(path);
      const server = createServer();
      // The file outlives its listener only when the listener does not remove it.
      await new Promise<void>((resolve) => server.listen(`${path}.1`, resolve));
      execFileSync("ln", [`${path}.1`, path]);
      await new Promise((resolve) => server.close(resolve));
    },
    "a sparse file": (path) => truncateSync(path, 500 * 1024 * 1024),
    "a link": (path) => {
      rmSync(path);
      symlinkSync("/etc/hostname", path);
    },
    "a folder": (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  };
  const cases = Object.keys(put).flatMap((what) => ["passwd", "group", "shadow"].map((file) => [what, file]));
  test.each(cases)("%s as %s: the image is refused, and no thread is held", async (what, file) => {
    await put[what!]!(join(root, "etc", file!));
    const attempts = Array.from({ length: ATTEMPTS }, () => fitImageRoot(root, names));
    for (const one of await Promise.allSettled(attempts))
      expect(one).toMatchObject({ status: "rejected", reason: { code: "sliver.image" } });
    expect(await readFile(import.meta.filename, "utf8")).not.toBe("");
  });

  test("FIFOs and links where files are written: they are replaced, and nothing is written through them", async () => {
    const places = ["hostname", "hosts", "resolv.conf", "sudoers.d/nodeyard"].map((name) =>
      join(root, "etc", name),
    );
    const outside = join(root, "outside");
    writeFileSync(outside, "outside");
    for (const make of [fifo, (path: string) => symlinkSync(outside, path)]) {
      for (const path of places) {
        rmSync(path, { force: true });
        make(path);
        await replaceHostile(path, "ours");
        expect(readFileSync(path, "utf8")).toBe("ours");
      }
    }
    expect(readFileSync(outside, "utf8")).toBe("outside");
  });

  test("a shorter text leaves nothing of the longer one", async () => {
    const path = join(root, "etc/passwd");
    writeFileSync(path, "x".repeat(100));
    expect(await editHostile(path, (text) => text.slice(0, 3))).toBe(true);
    expect(readFileSync(path, "utf8")).toBe("xxx");
    expect(await editHostile(join(root, "etc/none"), String)).toBe(false);
  });
});
