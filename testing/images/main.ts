import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, requireQemu } from "../qemu/index.ts";
import { ImageLife } from "./e2e-site.ts";
import { debian, mini } from "./kinds.ts";
import { liveThrough, type Step } from "./life.ts";
import { requireDiskimageBuilder } from "./require.ts";

const { values } = parseArgs({
  options: {
    image: { type: "string", default: "mini" },
    keep: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
if (values.help || !["mini", "debian"].includes(values.image)) {
  console.log(`npm run e2e:image -- [--image mini|debian] [--keep]
An image's whole life on this machine, as root: built, uploaded, booted, logged in to, retired.
  --image debian   diskimage-builder's debian-minimal vm from apt's mirror (minutes) instead of the smallest there is
  --keep           leave the folder with logs and images there`);
  process.exit(values.help ? 0 : 2);
}
if (requireDiskimageBuilder() !== undefined || requireQemu() !== undefined) process.exit(1);

const start = performance.now();
const step: Step = async (what, work) => {
  const since = performance.now();
  process.stdout.write(`${what} ... `);
  const result = await work();
  process.stdout.write(`${((performance.now() - since) / 1000).toFixed(1)} s\n`);
  return result;
};

const cache = join(tmpdir(), "nodeyard-image-cache");
const kind = values.image === "debian" ? debian(cache) : await mini(cache);
const client = await Client.make();
const site = new ImageLife(kind, client);
let code = 0;
try {
  await liveThrough(site, kind, step);
  console.log(`done in ${((performance.now() - start) / 1000).toFixed(1)} s`);
} catch (error) {
  console.error(`\nFAILED: ${(error as Error).stack}`);
  code = 1;
} finally {
  await (values.keep ? site.end() : site.close());
  if (values.keep) console.log(`kept: ${site.folder}`);
  await client.close();
}
process.exit(code);
