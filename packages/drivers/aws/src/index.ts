export { CALLS, type Call } from "./client/index.ts";
export type {
  AwsLabelOwn,
  AwsPoolConfig,
  AwsPoolOwn,
  AwsProviderConfig,
  AwsProviderOwn,
  ImageSource,
} from "./config.ts";
export { awsConfig } from "./config.ts";
export { type AwsHost, createAwsDriver } from "./driver.ts";
export { awsDriver } from "./edge/default.ts";
export { sdk } from "./edge/sdk.ts";
