import type { Clock, Random, ServiceState } from "@nodeyard/runtime";
import manifest from "../../package.json" with { type: "json" };

/** SIGUSR1 stops a process as SIGINT does. SIGHUP comes from `systemctl reload` or from a terminal that was closed. */
export type Signal = "SIGINT" | "SIGTERM" | "SIGUSR1" | "SIGHUP";

/** What a process knows of the machine and the person it runs for; only the entry points make one. */
export interface Machine {
  readonly clock: Clock;
  readonly random: Random;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
  readonly user: string;
  /** Names the process in the tree: locks, components and records of builds have it. */
  readonly hostname: string;
  /** Whether it may make slivers, and has /var/lib/nodeyard as its state folder. */
  readonly isRoot: boolean;
  readonly pid: number;
  /**
   * Calls `fn` at each of these signals; returns a function that ends that. A repetition of the same signal within a moment is ignored.
   * While there is a listener, a signal does not end the process.
   */
  onSignal(fn: (signal: Signal) => void): () => void;
  /**
   * Calls `fn` at SIGUSR2, as Nodepool dumps its stacks, but not again before it has ended; returns a function that ends that.
   */
  onDump(fn: () => Promise<void>): () => void;
  /** How the event loop fares: the share of its time in use since the start, and by how much timers are late now, milliseconds. */
  eventLoop(): Promise<{ readonly utilization: number; readonly delayMs: number }>;
  /** Memory in use, bytes. */
  memory(): { readonly resident: number; readonly heap: number };
  /** Reports the state of a daemon to the service manager that started it, if one did; from "ready" on also that it `works`. */
  report(state: ServiceState, works?: () => boolean): void;
  /** Ends the process at once: nothing is flushed or closed. */
  exit(code: number): never;
}

/** Nodeyard's own version. */
export const VERSION: string = manifest.version;
