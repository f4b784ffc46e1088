export { connectionString } from "./compile/zookeeper.ts";
export { type ConfigDiff, diffConfig } from "./diff.ts";
export type { CanarySettings, DiskimageConfig, ImageSettings } from "./diskimage-table.ts";
export {
  type ConfigEnvironment,
  type ConfigFiles,
  pathProblem,
  type ReadResult,
  readConfig,
} from "./edge/read.ts";
export { ConfigWatch, type WatchOptions } from "./edge/watch.ts";
export { type ConfigInput, type Loaded, loadConfig } from "./load.ts";
export { withProviders, zookeeperPart } from "./split.ts";
export { type LabelSettings, secure as secureFileSection, top as configurationSection } from "./table.ts";
export {
  type BuilderSettings,
  type Config,
  type DriverRegistry,
  type Finding,
  formatFinding,
  type UninstalledDriver,
  type UploadedImageSettings,
  type UploadSettings,
  type WebappConfig,
  type ZookeeperConfig,
} from "./types.ts";
export { type ValidationResult, validateConfig } from "./validate.ts";
export { type IssuerConfig, isSecureUrl } from "./webapp-table.ts";
