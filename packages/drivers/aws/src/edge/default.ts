import { createReadStream } from "node:fs";
import { createAwsDriver } from "../driver.ts";
import { sdk } from "./sdk.ts";

/** Bytes per read of an upload's file. */
const CHUNK = 1 << 20;

/** Reads a file of this host. */
export const openFile = (path: string) => createReadStream(path, { highWaterMark: CHUNK });

/** The `aws` driver. */
export const awsDriver = createAwsDriver({ sdk, openFile });
