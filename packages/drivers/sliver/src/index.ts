export type {
  MachineAt,
  SliverPoolConfig,
  SliverProviderConfig,
} from "./config.ts";
export { sliverConfig } from "./config.ts";
export { sliverDriver } from "./edge/default.ts";
export { WRITER } from "./names.ts";
export type { SliverSettings } from "./rspec.ts";
