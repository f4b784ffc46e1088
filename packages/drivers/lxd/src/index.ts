export { type LxdProviderConfig, lxdConfig } from "./config.ts";
export { createLxdDriver, type LxdHost } from "./driver.ts";
export { lxdDriver, thisHost } from "./edge/host.ts";
