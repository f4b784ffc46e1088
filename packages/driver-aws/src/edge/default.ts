import { createReadStream } from "node:fs";
import { createAwsDriver } from "../driver.ts";
import { sdk } from "./sdk.ts";

/** Bytes that are read at once for an upload. */
const CHUNK = 1 << 20;

/** The bytes of a file of this host. */
export const openFile = (path: string) => createReadStream(path, { highWaterMark: CHUNK });

/** The `aws` driver. */
export const awsDriver = createAwsDriver({ sdk, openFile });
