import type { Clock } from "@nodeyard/runtime";
import type { TreeCapabilities } from "../contract.ts";
import type { PortEvent } from "../remote/port.ts";
import type { CallInfo } from "./call.ts";
import type { MemoryServer } from "./server.ts";

/** A fault of a call: the connection breaks before (lose-request) or after (lose-reply) the server applies it, or it is delayed. */
export type Fault = "lose-request" | "lose-reply" | { readonly delayMs: number } | undefined;

export interface MemoryPortOptions {
  /** Name for the log of the server and for faults. Sessions of one client have the same. */
  readonly client: string;
  /** The client's clock. */
  readonly clock: Clock;
  /** Clock of the network, which continues while the client is frozen. */
  readonly network: Clock;
  readonly server: MemoryServer;
  readonly capabilities: TreeCapabilities;
  /** The server ends the session after this long without a connection. */
  readonly sessionTimeoutMs: number;
  /** Draws the time from the loss of a connection to the next one, in ms. */
  readonly reconnectMs: () => number;
  /** Draws a number from 0 to `count` - 1: the server to connect to. */
  readonly choose: (count: number) => number;
  /** Draws the time of one message in one direction, in ms. Undefined: none, messages arrive in a microtask. */
  readonly latency: (() => number) | undefined;
  /** Asked once for each call, when it is sent. */
  readonly fault: (call: CallInfo) => Fault;
  /** Called for every event before it is sent; true drops the event although the connection stands. */
  readonly losesEvent: (path: string) => boolean;
}

/** A watch of a client. */
export interface Watching {
  /** It covers this path and everything beneath. */
  readonly root: string;
  readonly onEvent: (event: PortEvent) => void;
  readonly onReady: () => void;
  /** Removes the watch from the server; set while the watch stands. */
  stop: (() => void) | undefined;
}
