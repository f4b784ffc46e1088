import { SocketConnector } from "../edge/socket-connector.ts";
import { systemClock, systemRandom } from "../edge/system.ts";
import { BadArguments } from "../errors.ts";
import type { ZooKeeperOptions } from "../types.ts";

type Optional = "sasl" | "connectTimeoutMs";

/** The options with all defaults. Without `connectTimeoutMs` the limit depends on the number of servers. */
export type Settings = Required<Omit<ZooKeeperOptions, Optional | "tls">> & Pick<ZooKeeperOptions, Optional>;

/** Applies the defaults. Throws BadArguments for a number that is not above 0. */
export function settingsOf({ tls, ...options }: ZooKeeperOptions): Settings {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
  const settings: Settings = {
    sessionTimeoutMs: 10_000,
    operationTimeoutMs: 60_000,
    maxInFlight: 4_096,
    maxQueued: 100_000,
    maxRequestBytes: 0xfffff,
    maxResponseBytes: 128 << 20,
    reconnectBaseMs: 100,
    reconnectMaxMs: 2_000,
    allowReadOnly: false,
    auth: [],
    hooks: {},
    clock: systemClock,
    random: systemRandom,
    connector: options.connector ?? new SocketConnector(tls),
    ...given,
  };
  for (const [name, value] of Object.entries(settings))
    if (typeof value === "number" && !(Number.isFinite(value) && value > 0))
      throw new BadArguments(`option ${name} is ${value}; it must be a number above 0`);
  return settings;
}
