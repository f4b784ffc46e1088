export type { BackEnd, Configured, SliverRef } from "./contract.ts";
export { LenderStuckError, MachineError, StepTimeoutError, StoppingError } from "./errors.ts";
export { type Busy, EXECUTOR_DEFAULTS, Executor, type ExecutorOptions, type Outcome } from "./executor.ts";
export {
  type Belonging,
  belongings,
  dismantleMachine,
  type IsolationOptions,
  isolationSchema,
  keptNetwork,
  LxcBackEnd,
  MACHINE_LOCK,
  type MachineOptions,
  removeOwn,
  SliverMachine,
} from "./lxc/index.ts";
export { Archives } from "./storage/index.ts";
