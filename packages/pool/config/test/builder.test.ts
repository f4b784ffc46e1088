import { expect, test } from "vitest";
import { load, loaded } from "./support.ts";

const text = `
images-dir: /images
elements-dir: /elements
build-log-retention: 0
diskimages:
  - name: base
    abstract: true
    elements: [ubuntu, vm]
    env-vars: {A: "1", B: "1"}
    delete-after-upload: true
    rebuild-age: 3600
    pause: true
    metadata: {from: base}
  - name: noble
    parent: base
    elements: [ssh]
    env-vars: {B: "2"}
    delete-after-upload: false
    rebuild-age: 0
    pause: false
    release: 24
    formats: [raw]
    dib-cmd: "'/opt/my dib/run' --quick"
  - name: own
    build-command: [/usr/bin/make-image, --fast]
providers:
  - name: cloud
    driver: fake
    cloud: c
    image-name-format: "x-{image_name}"
    diskimages:
      - {name: noble, pause: true, meta: {k: 1}}
    pools: []
`;

test("a child appends elements, merges its environment, replaces what is not empty", () => {
  const { builder } = loaded(text, "diskimages:\n  - {name: noble, env-vars: {SECRET: s}}\n");
  expect(builder).toMatchObject({ imagesDir: "/images", elementsDir: "/elements", logRetention: 1 });
  expect([...builder.images.keys()]).toEqual(["noble", "own"]);
  expect(builder.images.get("noble")).toMatchObject({
    elements: ["ubuntu", "vm", "ssh"],
    env: { A: "1", B: "2", SECRET: "s" },
    deleteAfterUpload: false,
    rebuildAgeMs: 3_600_000,
    buildTimeoutMs: 28_800_000,
    paused: true,
    release: "24",
    formats: ["raw"],
    dibCommand: ["/opt/my dib/run", "--quick"],
    command: null,
    metadata: {},
  });
  expect(builder.images.get("own")?.command).toEqual(["/usr/bin/make-image", "--fast"]);
  expect(builder.uploads.get("cloud")).toMatchObject({ nameFormat: "x-{image_name}", postUploadHook: null });
  expect(builder.uploads.get("cloud")?.images.get("noble")).toMatchObject({
    paused: true,
    metadata: { k: "1" },
  });
});

test.each(["own/er", "..", ".", "/", "a\nb"])(
  "a diskimage called %j is refused: its name is part of paths",
  (name) => {
    const { errors } = load(text.replace("name: own", `name: ${JSON.stringify(name)}`));
    expect(errors).toEqual([
      expect.stringMatching(/diskimages.*name.*folder and a node of the tree; write a name without/),
    ]);
    // One that is never built is in no path.
    const abstract = text.replace("name: own", `name: ${JSON.stringify(name)}\n    abstract: true`);
    expect(load(abstract).errors).toEqual([]);
  },
);

test("an empty build command is reported and counts as none", () => {
  const { warnings, errors } = load(text.replace("[/usr/bin/make-image, --fast]", "[]"));
  expect(errors).toEqual([]);
  expect(warnings).toEqual([
    expect.stringMatching(/rebuild-age: is 0, which counts as an absent key/),
    expect.stringMatching(/build-command: is empty: diskimage-builder makes/),
  ]);
});

test("a build command that no shell could split is refused once, with its place", () => {
  const { errors } = load(text.replace("--quick", "'--quick"));
  expect(errors.filter((line) => line.includes("dib-cmd"))).toHaveLength(1);
});
