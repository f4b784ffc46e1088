export type {
  OpenstackLabelOwn,
  OpenstackPoolConfig,
  OpenstackPoolOwn,
  OpenstackProviderConfig,
  OpenstackProviderOwn,
} from "./config.ts";
export { openstackConfig } from "./config.ts";
export { createOpenstackDriver, type OpenstackHost } from "./driver.ts";
export * from "./edge/host.ts";
