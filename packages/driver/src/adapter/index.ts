export { type AdapterDriverOptions, adapterDriver } from "./driver.ts";
export { imageTagOf, tagOf } from "./metadata.ts";
export type {
  Adapter,
  AdapterContext,
  AdapterOf,
  AdapterResource,
  ImageOrder,
  Instance,
  MachineOrder,
  Metadata,
  StateMachine,
} from "./types.ts";
