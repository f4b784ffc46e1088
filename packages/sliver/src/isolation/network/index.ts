export { GATEWAY, Network } from "./edge/network.ts";
export { ipv4, type Outbound, TABLE } from "./rules.ts";
