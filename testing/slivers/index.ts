export { difference, hostState } from "./host-state.ts";
export { whyNot } from "./require.ts";
