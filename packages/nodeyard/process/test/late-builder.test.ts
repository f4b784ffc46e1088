import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { Site } from "../../cli/test/nodeyard.ts";

let site: Site | undefined;

afterEach(() => site?.close());

test("diskimages that are added while Nodeyard is up are built", async () => {
  site = new Site("labels: []\nproviders: []\n");
  const images = join(site.folder, "images");
  const command = join(site.folder, "make");
  mkdirSync(images);
  writeFileSync(command, '#!/bin/sh\necho image > "$DIB_IMAGE_FILENAME.raw"\n');
  chmodSync(command, 0o755);
  const up = await site.up();
  const diskimage = `{name: small, formats: [raw], build-command: [${command}]}`;
  const logs = join(site.folder, "logs");
  // First without a folder: what is wrong is told, and the next change is taken up.
  const text = (folder: string) =>
    `images-dir: ${folder}\nbuild-log-dir: ${logs}\nlabels: []\nproviders: []\ndiskimages: [${diskimage}]\n`;
  site.write(text(join(site.folder, "none")));
  await up.printed("cannot start the builder");
  site.write(text(images));
  await up.printed("build ready");
  expect((await up.kill("SIGTERM")).code).toBe(0);
});
