export { type QemuProviderConfig, qemuConfig } from "./config.ts";
export { qemuDriver } from "./driver.ts";
export { bridgeNames } from "./machine/bridge.ts";
