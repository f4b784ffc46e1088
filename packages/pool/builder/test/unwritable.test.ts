import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemRandom } from "@nodeyard/runtime";
import { afterEach, beforeEach, expect, test } from "vitest";
import { HostDisk } from "../src/index.ts";
import { type Host, makeHost } from "./rig.ts";

let host: Host;
let disk: HostDisk;

beforeEach(() => {
  host = makeHost();
  disk = new HostDisk(host.images, "group");
});
afterEach(() => host.remove());

test("an images-dir that cannot be written is named with its remedy", async () => {
  mkdirSync(join(host.images, "builder_id.txt.new"));
  await expect(disk.builderId(systemRandom)).rejects.toMatchObject({
    code: "builder.images_dir_unwritable",
    message: expect.stringMatching(
      new RegExp(`^cannot write to images-dir ${host.images} \\(EISDIR.*\\): free disk space`),
    ),
  });
});

test("an intent that cannot be stored leaves nothing half written", async () => {
  mkdirSync(join(host.images, "small-0a.build"));
  const work = join(host.images, ".work/small-0a");
  const intent = { v: 1, installation: "i", image: "small", build: "0a", work } as const;
  await expect(disk.begin(intent)).rejects.toThrow("EISDIR");
  expect(host.files()).toEqual(["small-0a.build"]);
});

test("a draft of an intent, left by a builder that was killed while it wrote it, is removed by the next start", async () => {
  const drafts = ["small-0a.build.new", "my-image-0b.build.new"];
  const others = ["notes.new", "small-0c.build", "small-0c.raw"];
  for (const name of [...drafts, ...others]) writeFileSync(join(host.images, name), "");
  await HostDisk.open(host.images, "group");
  expect(host.files()).toEqual(others);
});
