export { installedPages } from "./edge/documentation.ts";
export { systemMachine } from "./edge/system-machine.ts";
export { type Machine, type Signal, VERSION } from "./machine.ts";
