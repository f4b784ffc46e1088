import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { Site } from "../../cli/test/nodeyard.ts";

const sites: Site[] = [];

afterEach(async () => {
  for (const site of sites.splice(0)) await site.close();
});

function siteWith(images?: string): Site {
  const site = new Site("");
  sites.push(site);
  const folder = images ?? join(site.folder, "images");
  site.write(
    `images-dir: ${folder}\nlabels: []\nproviders: []\ndiskimages: [{name: small, dib-cmd: "true"}]\n`,
  );
  return site;
}

test("one builder works in an images-dir: another is refused before it looks at it, and has it when the first is killed", async () => {
  const first = siteWith();
  const images = join(first.folder, "images");
  mkdirSync(images);
  const running = await first.up();
  const second = siteWith(images);
  const refused = await second.run("-c", second.config, "up");
  expect(refused.code).toBe(1);
  expect(refused.err).toContain(
    `nodeyard: another builder works in images-dir ${images} of ${second.config}, and two would end each other's builds`,
  );
  expect(readdirSync(images).sort()).toEqual([".builder.lock", "builder_id.txt"]);
  await running.kill("SIGKILL");
  const again = await second.up();
  expect((await again.kill("SIGTERM")).code).toBe(0);
});
