export { GATEWAY, Network } from "./edge/network.ts";
export { type Outbound, TABLE } from "./rules.ts";
