import { openFile } from "@nodeyard/driver/http";
import { createAwsDriver } from "./driver.ts";
import { sdk } from "./edge/sdk.ts";

export { CALLS, type Call } from "./client/calls.ts";
export { type AwsProviderConfig, awsConfig } from "./config.ts";
export { type AwsHost, createAwsDriver } from "./driver.ts";
export { sdk } from "./edge/sdk.ts";

/** The `aws` driver. */
export const awsDriver = createAwsDriver({ sdk, openFile });
