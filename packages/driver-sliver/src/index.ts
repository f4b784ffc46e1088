export { sliverConfig } from "./config/index.ts";
export { sliverDriver } from "./edge/default.ts";
export { WRITER } from "./names.ts";
export type {
  MachineAt,
  SliverLabelOwn,
  SliverPoolConfig,
  SliverProviderConfig,
  SliverProviderOwn,
} from "./own.ts";
