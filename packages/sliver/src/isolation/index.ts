export type { BackEnd, Configured, SliverRef } from "./contract.ts";
export { LenderStuckError, StepTimeoutError, StoppingError } from "./errors.ts";
export { EXECUTOR_DEFAULTS, Executor, type ExecutorOptions, type Outcome } from "./executor.ts";
export {
  type IsolationOptions,
  isolationSchema,
  LxcBackEnd,
  type MachineOptions,
  SliverMachine,
} from "./lxc/index.ts";
