import { SocketConnector } from "../edge/socket-connector.ts";
import { systemClock, systemRandom } from "../edge/system.ts";
import { BadArguments } from "../errors.ts";
import type { AuthInfo, Clock, Connector, Credentials, Hooks, Random, ZooKeeperOptions } from "../types.ts";

/** The options with every default applied. */
export interface Settings {
  readonly sessionTimeoutMs: number;
  /** Undefined: depends on the number of servers. */
  readonly connectTimeoutMs: number | undefined;
  readonly operationTimeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueued: number;
  readonly maxRequestBytes: number;
  readonly maxResponseBytes: number;
  readonly reconnectBaseMs: number;
  readonly reconnectMaxMs: number;
  readonly allowReadOnly: boolean;
  readonly sasl: Credentials | undefined;
  readonly auth: readonly AuthInfo[];
  readonly hooks: Hooks;
  readonly clock: Clock;
  readonly random: Random;
  readonly connector: Connector;
}

/** Throws BadArguments for figures that make no sense. */
export function settingsOf(options: ZooKeeperOptions): Settings {
  return {
    sessionTimeoutMs: positive("sessionTimeoutMs", options.sessionTimeoutMs ?? 10_000),
    connectTimeoutMs:
      options.connectTimeoutMs === undefined
        ? undefined
        : positive("connectTimeoutMs", options.connectTimeoutMs),
    operationTimeoutMs: positive("operationTimeoutMs", options.operationTimeoutMs ?? 60_000),
    maxInFlight: positive("maxInFlight", options.maxInFlight ?? 4_096),
    maxQueued: positive("maxQueued", options.maxQueued ?? 100_000),
    maxRequestBytes: positive("maxRequestBytes", options.maxRequestBytes ?? 0xfffff),
    maxResponseBytes: positive("maxResponseBytes", options.maxResponseBytes ?? 128 << 20),
    reconnectBaseMs: positive("reconnectBaseMs", options.reconnectBaseMs ?? 100),
    reconnectMaxMs: positive("reconnectMaxMs", options.reconnectMaxMs ?? 2_000),
    allowReadOnly: options.allowReadOnly ?? false,
    sasl: options.sasl,
    auth: options.auth ?? [],
    hooks: options.hooks ?? {},
    clock: options.clock ?? systemClock,
    random: options.random ?? systemRandom,
    connector: options.connector ?? new SocketConnector(options.tls),
  };
}

function positive(name: string, value: number): number {
  if (Number.isFinite(value) && value > 0) return value;
  throw new BadArguments(`option ${name} is ${value}; it must be a number above 0`);
}
