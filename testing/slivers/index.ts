export { endDaemon } from "./end-daemon.ts";
export { difference, hostState } from "./host-state.ts";
export { CAPACITY, Machine } from "./machine.ts";
export { whyNot } from "./require.ts";
