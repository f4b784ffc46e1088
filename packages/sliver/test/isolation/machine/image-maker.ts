/** Unpacks an image until it is killed: `image-maker.ts FOLDER TAR`. It says what it is at, on standard output. */
import { join } from "node:path";
import { systemClock } from "@nodeyard/runtime";
import { Images, Pool } from "../../../src/isolation/storage/index.ts";

const [folder, tar] = process.argv.slice(2) as [string, string];
const pool = new Pool(join(folder, "pool"), join(folder, "pool.img"), 268_435_456);
const { signal } = new AbortController();
await pool.prepare(signal);
const onProgress = (line: string) => void process.stdout.write(`${line}\n`);
const images = new Images(pool, { sources: { big: { tar } }, cache: folder, clock: systemClock, onProgress });
await images.ensure("big", signal);
