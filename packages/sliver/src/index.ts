export * from "./core/index.ts";
export {
  type BackEnds,
  type Daemon,
  type DaemonConfig,
  DaemonConfigError,
  parseConfig,
  startDaemon,
} from "./daemon/index.ts";
export {
  Archives,
  type BackEnd,
  type Configured,
  EXECUTOR_DEFAULTS,
  Executor,
  type ExecutorOptions,
  type IsolationOptions,
  isolationSchema,
  LxcBackEnd,
  type MachineOptions,
  type Outcome,
  SliverMachine,
  type SliverRef,
} from "./isolation/index.ts";
export { Manager, type ManagerLog, type ManagerOptions, reportOf } from "./manager/index.ts";
export { type DocumentEndpoint, SignedSource } from "./sources/index.ts";
export { Store, type StoreFiles } from "./store/index.ts";
