export { LxcBackEnd } from "./edge/lxc-back-end.ts";
export { type MachineOptions, SliverMachine } from "./edge/machine.ts";
export { type IsolationOptions, isolationSchema } from "./options.ts";
