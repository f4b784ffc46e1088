export { openstackConfig } from "./config/index.ts";
export { createOpenstackDriver, type OpenstackHost } from "./driver.ts";
export { openstackDriver } from "./edge/default.ts";
export { thisHost } from "./edge/host.ts";
export type {
  OpenstackLabelOwn,
  OpenstackPoolConfig,
  OpenstackPoolOwn,
  OpenstackProviderConfig,
  OpenstackProviderOwn,
} from "./own.ts";
