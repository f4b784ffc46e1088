export { type Belonging, belongings } from "./edge/belongings.ts";
export { dismantle as dismantleMachine } from "./edge/dismantle.ts";
export { keptNetwork } from "./edge/kept-network.ts";
export { LxcBackEnd } from "./edge/lxc-back-end.ts";
export { type MachineOptions, SliverMachine } from "./edge/machine.ts";
export { removeOwn } from "./edge/own-files.ts";
export { MACHINE_LOCK } from "./names.ts";
export { type IsolationOptions, isolationSchema } from "./options.ts";
