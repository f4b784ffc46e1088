export {
  type GceLabelOwn,
  type GcePoolConfig,
  type GcePoolOwn,
  type GceProviderConfig,
  type GceProviderOwn,
  gceConfig,
} from "./config.ts";
export { createGceDriver, type GceHost } from "./driver.ts";
export * from "./edge/host.ts";
