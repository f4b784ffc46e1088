import { DataLost, ZooKeeperError } from "../errors.ts";
import type { Endpoint } from "../types.ts";
import { OpCode } from "../wire/op-code.ts";
import type { Connection, ConnectionCallbacks } from "./connection.ts";
import type { DialOutcome } from "./dialer.ts";
import { ANY_EPOCH, Pending } from "./pending.ts";
import type { Settings } from "./settings.ts";

/** The password of a client that has no session yet. */
export const NO_PASSWORD: Uint8Array = new Uint8Array(16);
/** Ends a session. */
export const GOODBYE = { type: OpCode.closeSession } as const;

type Connect = (to: readonly [Endpoint, limitMs: number], callbacks: ConnectionCallbacks) => Connection;

/**
 * Finds out why servers do not answer the request to continue a session. A server that is behind the client, is overloaded, or has no quorum
 * closes the connection without a word. So after a session timeout every second attempt makes another session and ends it at once. The end is a
 * write, so the server that answers it has applied all changes before it; when its zxid is below what the client has seen nevertheless, these
 * changes are gone.
 */
export class Comparison {
  /** Why the session cannot be continued; undefined: that is not known. */
  found: DataLost | undefined;
  readonly #settings: Settings;
  readonly #connect: Connect;
  /** Monotonic milliseconds; undefined: the last request to continue the session was answered. */
  #refusedSince: number | undefined;
  #wasLast = false;
  #connection: Connection | undefined;

  constructor(settings: Settings, connect: Connect) {
    this.#settings = settings;
    this.#connect = connect;
  }

  /** A server has not answered the request to continue the session. */
  refused(): void {
    this.#refusedSince ??= this.#settings.clock.monotonic();
  }

  /** A server has answered it. */
  forget(): void {
    this.#refusedSince = undefined;
    this.found = undefined;
  }

  /** Whether the next attempt is to compare. */
  isDue(timeoutMs: number): boolean {
    const refusedMs = this.#settings.clock.monotonic() - (this.#refusedSince ?? Number.POSITIVE_INFINITY);
    this.#wasLast = refusedMs > timeoutMs && !this.#wasLast;
    return this.#wasLast;
  }

  /** Compares with one server. `seen`: the newest zxid of the client. */
  begin(endpoint: Endpoint, limitMs: number, seen: bigint, done: (outcome: DialOutcome) => void): void {
    const { sessionTimeoutMs, allowReadOnly } = this.#settings;
    const connection = this.#connect([endpoint, limitMs], {
      connectRequest: () => ({
        protocolVersion: 0,
        lastZxidSeen: 0n,
        timeOut: Math.round(sessionTimeoutMs),
        sessionId: 0n,
        passwd: NO_PASSWORD,
        readOnly: allowReadOnly,
      }),
      welcomed: () => undefined,
      ready: () => {
        const compare = () => {
          const { place, channel } = connection;
          this.forget();
          if (channel.lastZxid < seen) {
            this.refused();
            this.found = new DataLost(place, channel.lastZxid, seen);
          }
          connection.end(this.found ?? new ZooKeeperError("zookeeper.disconnected", `${place}: compared`));
        };
        connection.channel.send(new Pending(GOODBYE, compare, Number.POSITIVE_INFINITY, 0, ANY_EPOCH));
      },
      event: () => {},
      room: () => {},
      over: (cause) => {
        this.#connection = undefined;
        done({ cause, ready: false, expired: false });
      },
    });
    this.#connection = connection;
  }

  close(): void {
    this.#connection?.close();
  }
}
