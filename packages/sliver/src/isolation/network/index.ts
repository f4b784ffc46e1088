export { GATEWAY, Network } from "./edge/network.ts";
export { type Inbound, ipv4, type Outbound, TABLE } from "./rules.ts";
