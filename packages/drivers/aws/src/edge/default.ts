import { openFile } from "@nodeyard/driver/http";
import { createAwsDriver } from "../driver.ts";
import { sdk } from "./sdk.ts";

/** The `aws` driver. */
export const awsDriver = createAwsDriver({ sdk, openFile });
