export type {
  BootFiles,
  FileImage,
  QemuLabelOwn,
  QemuPoolConfig,
  QemuProviderConfig,
  QemuProviderOwn,
} from "./config.ts";
export { qemuConfig } from "./config.ts";
export { qemuDriver } from "./edge/default.ts";
export { bridgeNames } from "./machine/bridge.ts";
