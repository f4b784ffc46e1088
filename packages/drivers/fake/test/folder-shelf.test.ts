import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ImageTag, runSteps, type UploadOrder } from "@nodeyard/driver";
import { systemClock } from "@nodeyard/runtime";
import { expect, onTestFinished, test } from "vitest";
import { folderShelf } from "../src/edge/folder-shelf.ts";
import { imageStore } from "../src/images.ts";

const tag: ImageTag = {
  installation: "i",
  provider: "cloud",
  image: "small",
  buildId: "0a",
  uploadId: "0000000000",
};
const order: UploadOrder = {
  tag,
  name: "small-1",
  file: "small-0a.raw",
  format: "raw",
  size: 1,
  sha256: "-",
  md5: "-",
  metadata: {},
  own: {},
  progress: () => {},
};
const signal = new AbortController().signal;

// Each point at which kill -9 leaves files that no list shows: the names are what is there then.
test.each([
  ["while it stores the facts of a new image", ["new"]],
  ["in a deletion, after the facts were removed", ["image"]],
])("a process that is killed %s leaves files that the removal of the upload finds", async (_, left) => {
  const folder = mkdtempSync(join(tmpdir(), "shelf-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const shelf = folderShelf(folder);
  const { id } = await shelf.create(order, signal);
  await shelf.delete(id, signal);
  for (const kind of left) writeFileSync(join(folder, `${id}.${kind}`), "{");
  const store = imageStore(shelf, ["raw"], systemClock);
  const handles = { clock: systemClock, signal, externalId: null, save: async () => {} };
  await runSteps((step) => store.remove(tag, step), handles);
  expect(readdirSync(folder)).toEqual([]);
});
