import { type Clock, type Random, systemClock, systemRandom } from "@nodeyard/runtime";
import { Client } from "./client.ts";
import { bySocket, byTcp, type Transport } from "./edge/transport.ts";
import { ClientError } from "./errors.ts";

/** Options of `connect`, which apply to every call of the client. */
export interface ConnectOptions {
  /** A token from `nodeyard token create`. The Unix socket needs none. */
  readonly token?: string;
  /** Milliseconds for one call with all its repetitions. Default: 30 s. */
  readonly timeoutMs?: number;
  /** Clock, random numbers and transport. Default: those of Node. */
  readonly clock?: Clock;
  readonly random?: Random;
  readonly send?: Transport;
}

/**
 * A client of the Nodeyard at `address`: `http://HOST:PORT`, `https://HOST`, or the path of a Unix socket. Connects at the first call.
 * Throws ClientError when the address is invalid.
 *
 *     const client = connect(process.env.NODEYARD_URL, { token: process.env.NODEYARD_TOKEN });
 */
export function connect(address: string, options: ConnectOptions = {}): Client {
  const { token, timeoutMs = 30_000, clock = systemClock, random = systemRandom } = options;
  const isSocket = address.startsWith("/");
  const base = isSocket ? "http://localhost" : baseOf(address);
  const send = options.send ?? (isSocket ? bySocket(address) : byTcp);
  return new Client({ address, base, send, clock, random, token, timeoutMs });
}

function baseOf(address: string): string {
  const { protocol, origin, pathname } = URL.parse(address) ?? { protocol: "", origin: "", pathname: "" };
  if (protocol === "http:" || protocol === "https:") return origin + pathname.replace(/\/+$/, "");
  const text = JSON.stringify(address);
  throw new ClientError(
    "client.bad_address",
    `${text} is no address of a Nodeyard: give http://HOST:PORT, https://HOST, or the path of its http.sock`,
  );
}
