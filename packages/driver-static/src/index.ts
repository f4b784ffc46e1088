export {
  type StaticHost,
  type StaticPoolConfig,
  type StaticPoolOwn,
  type StaticProviderConfig,
  staticConfig,
} from "./config.ts";
export { staticDriver } from "./driver.ts";
