export type {
  AzureLabelOwn,
  AzurePoolConfig,
  AzurePoolOwn,
  AzureProviderConfig,
  AzureProviderOwn,
} from "./config.ts";
export { azureConfig } from "./config.ts";
export { type AzureHost, createAzureDriver } from "./driver.ts";
export { azureDriver, thisHost } from "./edge/default.ts";
