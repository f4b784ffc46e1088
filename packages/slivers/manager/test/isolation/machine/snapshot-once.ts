import { systemClock } from "@nodeyard/runtime";
import { Images } from "../../../src/isolation/storage/edge/images.ts";
import { Pool } from "../../../src/isolation/storage/edge/pool.ts";

/** `snapshot-once.ts POOL ROOT`: makes the sliver root at ROOT the image `warm`, in a process that may be killed. */
const [, , folder, root] = process.argv as [string, string, string, string];
const reported = { clock: systemClock, onProgress: () => undefined };
const images = new Images(new Pool(folder, `${folder}.img`, 0, reported), {
  sources: {},
  cache: `${folder}.cache`,
  ...reported,
});
await images.snapshot("warm", root, { user: "ny-01", disk: 1024 }, new AbortController().signal);
