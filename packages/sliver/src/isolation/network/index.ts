export { GATEWAY, Network } from "./edge/network.ts";
export type { Outbound } from "./rules.ts";
