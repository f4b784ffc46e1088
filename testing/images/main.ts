import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client, requireQemu } from "../qemu/index.ts";
import { ImageLife } from "./e2e-site.ts";
import { breakable, debian, mini } from "./kinds.ts";
import { liveThrough } from "./life.ts";
import type { Step } from "./parts.ts";
import { requireDiskimageBuilder } from "./require.ts";
import { liveThroughSaved } from "./saved.ts";
import { liveThroughTrials } from "./trials.ts";

const USAGE = `npm run e2e:image -- [--image mini|debian] [--saved] | --canary [--keep]
An image's whole life on this machine, as root: built, uploaded, booted, logged in to, retired.
  --image debian   diskimage-builder's debian-minimal vm from apt's mirror (minutes) instead of the smallest there is
  --saved          its machines go on from a saved state instead of booting: the image gets the element nodeyard-parked
  --canary         instead: a new build that does not boot is tried on half of the launches and rolled back by itself, a good one takes over
  --keep           leave the folder with logs and images there
`;

const values = options();
if (values.help) {
  process.stdout.write(USAGE);
  process.exit(0);
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
const image = values.image === "debian" ? debian(cache) : await mini(cache);
const kind = values.canary ? breakable(image) : { ...image, saved: values.saved };
const client = await Client.make();
const site = new ImageLife(kind, client);
let code = 0;
// Machines would outlive an interrupted run.
for (const signal of ["SIGINT", "SIGTERM"] as const)
  process.once(signal, () => void site.close().finally(() => process.exit(130)));
try {
  if (values.canary) await liveThroughTrials(site, step);
  else if (values.saved) await liveThroughSaved(site, step);
  else await liveThrough(site, kind, step);
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

function options() {
  try {
    const { values: given } = parseArgs({
      options: {
        image: { type: "string", default: "mini" },
        canary: { type: "boolean", default: false },
        saved: { type: "boolean", default: false },
        keep: { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    if (!["mini", "debian"].includes(given.image))
      throw new Error(`--image ${given.image} is none of ours; write mini or debian`);
    if (given.canary && (given.saved || given.image !== "mini"))
      throw new Error("--canary goes with neither --saved nor --image debian; leave one of them out");
    return given;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n${USAGE}`);
    return process.exit(2);
  }
}
