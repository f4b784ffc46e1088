import type { Clock } from "@nodeyard/runtime";
import type { TreeCapabilities } from "../contract.ts";
import type { PortEvent } from "../remote/port.ts";
import type { CallInfo } from "./call.ts";
import type { MemoryServer } from "./server.ts";

/** What becomes of a call: all is well, the connection breaks before or after it is carried out, or it takes longer. */
export type Fault = "lose-request" | "lose-reply" | { readonly delayMs: number } | undefined;

export interface MemoryPortOptions {
  readonly client: string;
  /** The client's. */
  readonly clock: Clock;
  /** What goes over the wires goes on while the client stands still. */
  readonly network: Clock;
  readonly server: MemoryServer;
  readonly capabilities: TreeCapabilities;
  readonly sessionTimeoutMs: number;
  /** Time from the loss of a connection to the next one, ms. */
  readonly reconnectMs: () => number;
  /** A number from 0 to below `count`: which of so many servers to connect to. */
  readonly choose: (count: number) => number;
  readonly latency: (() => number) | undefined;
  readonly fault: (call: CallInfo) => Fault;
  /** Asked for every event before it is sent; true: it never arrives, though the connection stands. */
  readonly losesEvent: () => boolean;
}

/** A watch of a client. */
export interface Watching {
  readonly root: string;
  readonly onEvent: (event: PortEvent) => void;
  readonly onReady: () => void;
  /** Ends the server's part; set while it stands. */
  stop: (() => void) | undefined;
}
