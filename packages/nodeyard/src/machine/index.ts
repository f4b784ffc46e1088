export { systemMachine } from "./edge/system-machine.ts";
export type { Machine } from "./machine.ts";
export { VERSION } from "./version.ts";
