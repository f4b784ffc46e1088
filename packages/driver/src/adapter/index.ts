export { type AdapterDriverOptions, adapterDriver } from "./driver.ts";
export type {
  Adapter,
  AdapterContext,
  AdapterOf,
  AdapterResource,
  ImageOrder,
  Instance,
  MachineOrder,
  StateMachine,
} from "./types.ts";
