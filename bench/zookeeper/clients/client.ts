/** Names of what is compared: ours, the pure JavaScript client and the native one. */
export type ClientName = "ours" | "node-zookeeper-client" | "zookeeper";

export type OperationName = "create" | "get" | "set";

/** Called once per operation, with the error if there was one. */
export type Done = (error?: unknown) => void;

/** The work that is measured, in the form that each client offers its users. */
export interface BenchClient {
  create(path: string, data: Buffer, done: Done): void;
  get(path: string, done: Done): void;
  set(path: string, data: Buffer, done: Done): void;
  close(): Promise<void>;
}

export const SESSION_TIMEOUT_MS = 30_000;
