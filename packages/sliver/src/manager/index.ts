export { converged } from "./converged.ts";
export { dumpOf } from "./dump.ts";
export { BusyError, NotYetError } from "./errors.ts";
export { Manager, type ManagerLog, type ManagerOptions } from "./manager.ts";
export type { Change } from "./mutations.ts";
export { documentOf, reportOf } from "./report.ts";
export { watched } from "./watched.ts";
