import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { paths } from "@nodeyard/model";
import { ensurePath } from "@nodeyard/tree";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { digestSources } from "../src/edge/sources.ts";
import type { Builder } from "../src/index.ts";
import { type Host, makeHost, openTree, startBuilder, until } from "./rig.ts";
import { image } from "./support.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "nodeyard-sources-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
}

describe("what an image is made of, as a digest", () => {
  const of = (change: object = {}) => digestSources({ ...image, elements: ["one"], ...change }, folder);
  beforeEach(() => {
    put("one/install.d/10-do", "echo");
    put("one/element-deps", "two # why\n\n");
    put("two/root.d/10-root", "true");
    put("three/root.d/10-root", "unused");
  });

  test("the same wherever it lies, and whatever is beside it", async () => {
    const before = await of();
    put("three/root.d/10-root", "changed");
    expect(await of()).toBe(before);
    const copy = join(folder, "copy");
    for (const name of ["one", "two"]) cpSync(join(folder, name), join(copy, name), { recursive: true });
    expect(await digestSources({ ...image, elements: ["one"] }, copy)).toBe(before);
    expect(await digestSources({ ...image, elements: ["one"] }, `/nowhere:${copy}`)).toBe(before);
  });

  test.each([
    ["a file of an element", () => put("one/install.d/10-do", "echo 2")],
    ["its mode", () => chmodSync(join(folder, "one/install.d/10-do"), 0o755)],
    ["its name", () => put("one/install.d/11-do", "")],
    ["where a link leads", () => symlinkSync("x", join(folder, "one/link"))],
    ["an element that it depends on", () => put("two/root.d/10-root", "false")],
    ["which it depends on", () => put("one/element-deps", "two three")],
  ])("%s changes it", async (_what, change) => {
    const before = await of();
    change();
    expect(await of()).not.toBe(before);
  });

  test.each([
    [{ env: { A: "1" } }],
    [{ release: "22" }],
    [{ elements: ["one", "vm"] }],
    [{ dibCommand: ["disk-image-create", "-n"] }],
    [{ command: ["make"] }],
  ])("%j changes it", async (change) => {
    expect(await of(change)).not.toBe(await of());
  });

  test("the program of a build counts with what is in it", async () => {
    put("make", "1");
    const own = () => of({ command: [join(folder, "make")] });
    const before = await own();
    put("make", "2");
    expect(await own()).not.toBe(before);
  });
});

describe("a builder", () => {
  let host: Host;
  let builder: Builder | undefined;
  beforeEach(() => {
    host = makeHost();
  });
  afterEach(async () => {
    await builder?.close();
    host.remove();
  });

  test("builds again when the program of the build changes, and only then", async () => {
    const tree = await openTree(host);
    const command = host.script("make", 'echo 1 > "$DIB_IMAGE_FILENAME.raw"');
    const config = host.config(
      `  - {name: small, formats: [raw], rebuild-on-change: true, build-command: [${command}]}`,
    );
    const started = await startBuilder(tree, host, config);
    builder = started.builder;
    const ready = () =>
      [...started.builder.view.images.builds("small").values()].filter(({ state }) => state === "ready");
    const lines = () => started.log.lines;
    await until(() => ready().length === 1, "the first build", lines);
    // Any event of an image is followed by a sweep, which looks at what it is made of.
    const sweep = async () => {
      await ensurePath(tree, paths.imagePause("small"));
      await tree.delete(paths.imagePause("small"));
    };
    await sweep();
    host.script("make", 'echo 2 > "$DIB_IMAGE_FILENAME.raw"');
    await sweep();
    await until(() => ready().length === 2, "another one", lines);
    const causes = lines()
      .map(({ facts }) => (facts as { readonly cause?: string }).cause)
      .filter((cause) => cause !== undefined);
    expect(causes).toEqual(["first", "sources"]);
    await tree.close();
  });
});
