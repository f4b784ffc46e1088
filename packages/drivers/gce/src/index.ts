export { type GceProviderConfig, gceConfig } from "./config.ts";
export { createGceDriver, type GceHost } from "./driver.ts";
export * from "./edge/host.ts";
