export { type AzureProviderConfig, azureConfig } from "./config.ts";
export { type AzureHost, createAzureDriver } from "./driver.ts";
export { azureDriver, thisHost } from "./edge/default.ts";
