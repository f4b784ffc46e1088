export {
  type IbmLabelOwn,
  type IbmPoolConfig,
  type IbmPoolOwn,
  type IbmProviderConfig,
  ibmvpcConfig,
} from "./config.ts";
export { createIbmDriver, type IbmHost } from "./driver.ts";
export * from "./edge/host.ts";
