export { staticConfig } from "./config/index.ts";
export { staticDriver } from "./driver.ts";
export type {
  StaticHost,
  StaticPoolConfig,
  StaticPoolOwn,
  StaticProviderConfig,
  StaticProviderOwn,
} from "./own.ts";
