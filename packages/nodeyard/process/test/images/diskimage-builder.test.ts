import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BUILD_PATH, ELEMENTS, requireDiskimageBuilder } from "../../../../../testing/images/index.ts";
import { Site } from "../../../cli/test/nodeyard.ts";
import { type ListedBuild, until } from "./site.ts";

const lacking = requireDiskimageBuilder();

let site: Site;
beforeAll(() => {
  site = new Site("");
  mkdirSync(join(site.folder, "images"));
  site.write(`
images-dir: ${site.folder}/images
build-log-dir: ${site.folder}/logs
elements-dir: ${ELEMENTS}
labels: []
diskimages:
  - name: mini
    elements: [nodeyard-mini]
    dib-cmd: disk-image-create -n
    formats: [raw, qcow2]
    env-vars: {PATH: "${BUILD_PATH}", DIB_IMAGE_CACHE: "${site.folder}/cache", DIB_IMAGE_SIZE: "1"}
providers: []
`);
});
afterAll(() => site.close());

test.skipIf(lacking !== undefined)(
  "the real diskimage-builder makes an image in both formats, with sums that are right, and leaves nothing else",
  async () => {
    const up = await site.up();
    await up.printed("build started");
    await Promise.race([up.printed("build ready"), up.printed("build failed")]);
    const [build] = await site.json<ListedBuild[]>("dib-image-list");
    expect(build, up.err).toMatchObject({ state: "ready", formats: ["qcow2", "raw"] });
    const image = join(site.folder, "images", `${build!.id}.qcow2`);
    const facts = JSON.parse(
      execFileSync("qemu-img", ["info", "--output=json", image], { encoding: "utf8" }),
    );
    expect(facts).toMatchObject({ format: "qcow2", "format-specific": { data: { compat: "0.10" } } });
    const sum = createHash("sha256").update(readFileSync(image)).digest("hex");
    expect(readFileSync(`${image}.sha256`, "utf8").slice(0, 64)).toBe(sum);
    expect(readFileSync(join(site.folder, "logs", `${build!.id}.log`), "utf8")).toMatch(/Exit code: 0\n$/);
    expect(
      execFileSync("losetup", ["--list", "--noheadings", "--output", "BACK-FILE"], { encoding: "utf8" }),
    ).not.toContain(site.folder);
    await until(() => !readFileSync("/proc/mounts", "utf8").includes(site.folder), "no mount is left");
  },
);
