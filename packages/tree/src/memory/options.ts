import type { Clock } from "@nodeyard/runtime";
import type { TreeCapabilities } from "../contract.ts";
import type { PortEvent } from "../remote/port.ts";
import type { CallInfo } from "./call.ts";
import type { MemoryServer } from "./server.ts";

/** A fault of a call: the connection breaks before (lose-request) or after (lose-reply) the server applies it, or it is delayed. */
export type Fault = "lose-request" | "lose-reply" | { readonly delayMs: number } | undefined;

export interface MemoryPortOptions {
  readonly client: string;
  /** The client's clock. */
  readonly clock: Clock;
  /** Clock of the network, which continues while the client is frozen. */
  readonly network: Clock;
  readonly server: MemoryServer;
  readonly capabilities: TreeCapabilities;
  readonly sessionTimeoutMs: number;
  /** Draws the time from the loss of a connection to the next one, in ms. */
  readonly reconnectMs: () => number;
  /** Draws a number from 0 to `count` - 1: the server to connect to. */
  readonly choose: (count: number) => number;
  readonly latency: (() => number) | undefined;
  readonly fault: (call: CallInfo) => Fault;
  /** Called for every event before it is sent; true drops the event although the connection stands. */
  readonly losesEvent: () => boolean;
}

/** A watch of a client. */
export interface Watching {
  readonly root: string;
  readonly onEvent: (event: PortEvent) => void;
  readonly onReady: () => void;
  /** Removes the watch from the server; set while the watch stands. */
  stop: (() => void) | undefined;
}
