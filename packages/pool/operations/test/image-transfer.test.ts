import {
  type Canary,
  canaryPath,
  decodeCanary,
  encodeCanary,
  encodeImageBuild,
  encodeImageUpload,
  newImageBuild,
  newImageUpload,
  paths,
} from "@nodeyard/model";
import { noBoots, seededRandom, VirtualClock } from "@nodeyard/runtime";
import { createMemoryTree, ensurePath } from "@nodeyard/tree";
import { describe, expect, test } from "vitest";
import { checkExport, exportImages, importImages } from "../src/index.ts";

function newTree() {
  const clock = new VirtualClock();
  const random = seededRandom(3);
  return { clock, random, tree: createMemoryTree({ clock, random }).connect() };
}

const folder = paths.imageUploads("small", "b1", "cloud");

async function filled() {
  const handles = newTree();
  const { tree } = handles;
  const build = newImageBuild("b1", { builder: "host", builderId: "x", formats: ["raw"] }, 0);
  await ensurePath(tree, folder);
  await tree.set(paths.imageBuild("small", "b1"), encodeImageBuild(build));
  const upload = encodeImageUpload(newImageUpload({ username: null, pythonPath: null, shellType: null }, 0));
  for (const _ of [1, 2, 3]) await tree.create(`${folder}/`, upload, { sequential: true });
  return handles;
}

const canary: Canary = {
  candidate: null,
  since: 0,
  share: 0.5,
  tallies: { candidate: noBoots, stable: noBoots },
  rejected: ["b1"],
  last: { build: "b1", verdict: "rolled-back", why: "5 of 5 launches failed", at: 0 },
};

describe("an export of image data", () => {
  test("a rolled-back build is not launched by the importer, which knows of it before any build", async () => {
    const from = await filled();
    await ensurePath(from.tree, canaryPath("small"));
    await from.tree.set(canaryPath("small"), encodeCanary(canary));
    const all = await exportImages(from);
    expect(Object.keys(all)[0]).toBe(canaryPath("small"));
    const to = newTree();
    await importImages(to, checkExport(JSON.parse(JSON.stringify(all))));
    expect(decodeCanary("small", (await to.tree.get(canaryPath("small"))).data)).toEqual(canary);
    expect(await exportImages(to)).toEqual(all);
  });

  test("that was killed while it was written back leaves no number without a record when it is repeated", async () => {
    const all = checkExport(await exportImages(await filled()));
    const to = newTree();
    await ensurePath(to.tree, folder);
    await to.tree.create(`${folder}/`, undefined, { sequential: true });
    await to.tree.create(`${folder}/0000000077`);
    await ensurePath(to.tree, `${folder}/lock`);
    await importImages(to, all);
    const numbers = [...all.keys()].filter((path) => path.startsWith(folder)).map((path) => path.slice(-10));
    expect([...(await to.tree.children(folder))].sort()).toEqual([...numbers, "lock"]);
  });

  test.each([
    "/nodepool/images/../pause",
    "/nodepool/images/./pause",
    "/nodepool/images/a\u0000b/pause",
    `${canaryPath("a")}/b`,
    canaryPath(".."),
  ])("%j: is refused before anything is written", (path) => {
    expect(() => checkExport({ "/nodepool/images/small/pause": "", [path]: "" })).toThrow(
      `${path}: it is not a pause flag, build, upload or trial`,
    );
  });

  test("a trial that cannot be read is refused", () => {
    expect(() => checkExport({ [canaryPath("small")]: "{}" })).toThrow(
      "trial of image small has version undefined, this Nodeyard reads 1; delete",
    );
  });
});
