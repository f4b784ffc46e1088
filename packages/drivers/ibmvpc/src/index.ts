export { type IbmProviderConfig, ibmvpcConfig } from "./config.ts";
export { createIbmDriver } from "./driver.ts";
export * from "./edge/host.ts";
