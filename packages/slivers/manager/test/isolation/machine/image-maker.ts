import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { Images } from "../../../src/isolation/storage/edge/images.ts";
import { Pool } from "../../../src/isolation/storage/edge/pool.ts";

/** Unpacks an image until it is killed: `image-maker.ts FOLDER TAR`. It says what it is at, on standard output. */

const [folder, tar] = process.argv.slice(2) as [string, string];
const { signal } = new AbortController();
const reported = { clock: systemClock, onProgress: (line: string) => void process.stdout.write(`${line}\n`) };
const pool = new Pool(join(folder, "pool"), join(folder, "pool.img"), 268_435_456, reported);
await pool.prepare(signal);
const images = new Images(pool, { sources: { big: { tar } }, cache: folder, ...reported });
await images.ensure("big", signal);
