import { createSocket, type Socket } from "node:dgram";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { isIP } from "node:net";
import { backoff, type Clock, messageOf, type Random, type Timer } from "@nodeyard/runtime";
import type { Log } from "@nodeyard/telemetry";
import { datagramsOf } from "../lines.ts";
import type { LineSink } from "../reporter.ts";

/** Lines are gathered for as long, milliseconds. */
const GATHER_MS = 100;
/** The most lines that wait; further lines are dropped and counted. */
const MAX_LINES = 20_000;
/** An address is asked for again as often, milliseconds: servers move. */
const LOOKUP_MS = 600_000;

/** Where a statsd server is. */
export interface StatsdAddress {
  readonly host: string;
  readonly port: number;
}

/** Where the environment says that the statsd server is; undefined: figures are not sent (docs/contract/operations.md, "Statsd"). */
export function statsdServer(
  env: Readonly<Record<string, string | undefined>>,
): StatsdAddress | { readonly problem: string } | undefined {
  const { STATSD_HOST: host = "", STATSD_PORT: port = "" } = env;
  if (host === "" && port === "") return undefined;
  // 8125 is the port that statsd servers listen on.
  const number = port === "" ? 8125 : Number(port);
  if (!/^\d*$/.test(port) || number < 1 || number > 65_535)
    return { problem: `STATSD_PORT is ${JSON.stringify(port)}: give a port, 1 to 65535` };
  const name = host.replace(/^\[(.+)\]$/, "$1") || "localhost";
  if (isIP(name) === 0 && /[\s:/[\]]/.test(name))
    return {
      problem: `STATSD_HOST is ${JSON.stringify(host)}: give a name or an address; a port belongs into STATSD_PORT`,
    };
  return { host: name, port: number };
}

/**
 * Sends lines by UDP, over IPv4 if the server has an address of it, as Python's client, and over IPv6 if it has none or this machine has no
 * way there. Figures are worth no failure: while the name cannot be resolved lines are dropped, which is logged once, and the name is looked
 * up again.
 */
export class UdpSink implements LineSink {
  readonly #options: StatsdAddress;
  readonly #handles: { readonly clock: Clock; readonly random: Random; readonly log: Log };
  /** Undefined until the server's name was resolved once. */
  #socket: Socket | undefined;
  #lines: string[] = [];
  /** Set while lines are gathered. */
  #flush: Timer | undefined;
  #lookup: Timer | undefined;
  /** Look-ups of the name that failed in a row. */
  #failures = 0;
  #lost = 0;
  #closed = false;

  constructor(
    options: StatsdAddress,
    handles: { readonly clock: Clock; readonly random: Random; readonly log: Log },
  ) {
    this.#options = options;
    this.#handles = handles;
    void this.#resolve();
  }

  /** Lines that were not sent. */
  get lost(): number {
    return this.#lost;
  }

  /** Never fails. Lines beyond the limit, and all after `close`, are dropped. */
  send(lines: readonly string[]): void {
    if (this.#closed) return;
    const room = Math.max(0, MAX_LINES - this.#lines.length);
    this.#lost += Math.max(0, lines.length - room);
    this.#lines.push(...lines.slice(0, room));
    this.#flush ??= this.#handles.clock.setTimer(GATHER_MS, () => this.#send(), { background: true });
  }

  /** Sends the remaining lines and closes the socket. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#flush?.cancel();
    this.#lookup?.cancel();
    await Promise.all(this.#send());
    this.#closed = true;
    this.#socket?.close();
  }

  /** One promise for each datagram, which resolves when the system has taken or refused it. */
  #send(): readonly Promise<void>[] {
    this.#flush = undefined;
    const lines = this.#lines;
    this.#lines = [];
    const socket = this.#socket;
    if (socket === undefined) {
      this.#lost += lines.length;
      return [];
    }
    return datagramsOf(lines).map(
      (datagram) => new Promise((resolve) => socket.send(datagram, () => resolve())),
    );
  }

  /** Of the server's addresses the first to which this machine has a way. */
  async #connect({ host, port }: StatsdAddress): Promise<Socket> {
    let failure: unknown;
    for (const { address, family } of await lookup(host, { all: true, order: "ipv4first" })) {
      // The socket alone does not keep the process alive.
      const socket = createSocket(family === 6 ? "udp6" : "udp4").unref();
      socket.connect(port, address);
      try {
        await once(socket, "connect");
        return socket;
      } catch (error) {
        failure = error;
        socket.close();
      }
    }
    throw failure;
  }

  async #resolve(): Promise<void> {
    const { clock, random, log } = this.#handles;
    const { host } = this.#options;
    let again = LOOKUP_MS;
    try {
      const socket = await this.#connect(this.#options);
      // The server or the network is down; later figures may arrive again.
      socket.on("error", () => {});
      if (this.#closed) return void socket.close();
      this.#socket?.close();
      this.#socket = socket;
      this.#failures = 0;
    } catch (error) {
      // A server that was known is still used.
      if (this.#failures++ === 0)
        log.warn({ host, error: messageOf(error) }, "cannot reach the statsd server by its name; will retry");
      again = backoff(random, this.#failures, 1_000, 60_000);
    }
    if (!this.#closed) this.#lookup = clock.setTimer(again, () => void this.#resolve(), { background: true });
  }
}
