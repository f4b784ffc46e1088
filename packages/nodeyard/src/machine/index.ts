export { systemMachine } from "./edge/system-machine.ts";
export { type Machine, VERSION } from "./machine.ts";
