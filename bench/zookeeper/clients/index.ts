import type { BenchClient, ClientName } from "./client.ts";

export type { BenchClient, ClientName, Done, OperationName } from "./client.ts";

/** The clients, in the order of the first round. */
export const CLIENTS: readonly ClientName[] = ["ours", "node-zookeeper-client", "zookeeper"];

/** Loads only the requested client, so that its process contains nothing of the others. */
export async function connectClient(name: ClientName, servers: string): Promise<BenchClient> {
  if (name === "ours") return (await import("./ours.ts")).connectOurs(servers);
  if (name === "zookeeper") return (await import("./native.ts")).connectNative(servers);
  return (await import("./pure.ts")).connectPure(servers);
}
