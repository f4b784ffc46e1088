export { type OpenstackProviderConfig, openstackConfig } from "./config.ts";
export { createOpenstackDriver, type OpenstackHost } from "./driver.ts";
export * from "./edge/host.ts";
