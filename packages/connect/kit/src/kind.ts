import type { Client } from "@nodeyard/client";
import type { Clock, Random } from "@nodeyard/runtime";
import type { Counters, Log } from "@nodeyard/telemetry";
import type { z } from "zod";
import type { NodeShell } from "./on-node.ts";

/** What a connector works with. */
export interface ConnectorParts {
  /** Of its section in the file; its leases have it. */
  readonly name: string;
  /** The pool that its leases are of. */
  readonly pool: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** Each line has the connector's name. */
  readonly log: Log;
  readonly counters: Counters;
  /** Runs programs on nodes. */
  readonly shell: NodeShell;
}

/** A connector that runs. */
export interface Connector {
  /** Ends it within `graceMs` milliseconds. Leases, jobs and programs on nodes stay: the next start goes on with them. */
  close(graceMs: number): Promise<void>;
}

/** A system that connectors speak with, such as `boskos`. `options`: the keys of its section beside `name` and `system`. */
export interface ConnectorKind<Options = unknown> {
  readonly name: string;
  readonly options: z.ZodObject;
  /**
   * Starts a connector. Rejects with ConnectConfigError for what only a person can repair; a system that does not answer is not an error
   * of the start.
   */
  open(options: Options, parts: ConnectorParts): Promise<Connector>;
}

/** Gives a kind the type of its options. */
export function connectorKind<Schema extends z.ZodObject>(
  name: string,
  options: Schema,
  open: (options: z.output<Schema>, parts: ConnectorParts) => Promise<Connector>,
): ConnectorKind<z.output<Schema>> {
  return { name, options, open };
}
