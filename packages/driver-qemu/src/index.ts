export { qemuConfig } from "./config/index.ts";
export { qemuDriver } from "./edge/default.ts";
export { bridgeNames } from "./machine/bridge.ts";
export type {
  BootFiles,
  FileImage,
  QemuLabelOwn,
  QemuPoolConfig,
  QemuProviderConfig,
  QemuProviderOwn,
} from "./own.ts";
