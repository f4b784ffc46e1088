import type { HostAndPort } from "../connection-string.ts";
import { ZooKeeperError } from "../errors.ts";
import type { Endpoint, Timer } from "../types.ts";
import { resolveRound } from "./hosts.ts";
import type { Settings } from "./settings.ts";

/** How an attempt ended, possibly long after it succeeded. */
export interface DialOutcome {
  readonly cause: Error;
  /** The connection had become ready for operations. */
  readonly ready: boolean;
  /** The server answered that the session has expired. The same server accepts a new session at once, so no delay is needed. */
  readonly expired: boolean;
}

export interface DialerCallbacks {
  /** Tries one server. `done` is called once, when that connection has ended. */
  attempt(endpoint: Endpoint, limitMs: number, done: (outcome: DialOutcome) => void): void;
  /** No server of a round could be reached. */
  failed(error: Error): void;
}

/** A connection that ended sooner than this does not reset the back-off (milliseconds). */
const STABLE_MS = 1_000;
/** Shortest time limit of one attempt (milliseconds). */
const LEAST_LIMIT = 1_000;
/** Delays vary by plus or minus this share, so that clients of a restarted server do not reconnect at the same moment. */
const JITTER = 0.4;

/** Keeps a connection up: it tries every server once, then waits for a delay that doubles with each failed round. */
export class Dialer {
  /** The servers. A change takes effect with the next round. */
  hosts: readonly HostAndPort[];
  readonly #settings: Settings;
  readonly #callbacks: DialerCallbacks;
  #stopped = false;
  #started = false;
  #round = 0;
  #timer: Timer | undefined;

  constructor(hosts: readonly HostAndPort[], settings: Settings, callbacks: DialerCallbacks) {
    this.hosts = hosts;
    this.#settings = settings;
    this.#callbacks = callbacks;
  }

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#startRound();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  #startRound(): void {
    const { connector, random, clock } = this.#settings;
    let begun = false;
    // A DNS resolver can hang. The limit ends this round, and a new round resolves the names again.
    const hung = new ZooKeeperError(
      "zookeeper.resolve_timeout",
      "the names of the servers were not resolved in time",
    );
    const limit = clock.setTimer(this.#limitMs(this.hosts.length), () => go([], [hung]));
    const go = (endpoints: readonly Endpoint[], failures: readonly Error[]) => {
      if (begun) return;
      begun = true;
      limit.cancel();
      if (!this.#stopped) this.#next(endpoints, 0, failures[0]);
    };
    void resolveRound(this.hosts, connector, random).then((round) => go(round.endpoints, round.failures));
  }

  #next(endpoints: readonly Endpoint[], index: number, failure: Error | undefined): void {
    if (this.#stopped) return;
    const endpoint = endpoints[index];
    if (endpoint === undefined) {
      this.#callbacks.failed(
        failure ?? new ZooKeeperError("zookeeper.no_address", "no server has an address"),
      );
      this.#later();
      return;
    }
    const begun = this.#settings.clock.monotonic();
    this.#callbacks.attempt(endpoint, this.#limitMs(endpoints.length), (outcome) => {
      if (this.#stopped) return;
      if (outcome.expired) this.#startRound();
      else if (!outcome.ready) this.#next(endpoints, index + 1, outcome.cause);
      else if (this.#settings.clock.monotonic() - begun < STABLE_MS && this.#round > 0) this.#later();
      else {
        // The first break reconnects at once. A second one soon afterwards waits, so that a failing server is not flooded with connections.
        this.#round = this.#settings.clock.monotonic() - begun < STABLE_MS ? 1 : 0;
        this.#startRound();
      }
    });
  }

  #later(): void {
    const { reconnectBaseMs, reconnectMaxMs, random, clock } = this.#settings;
    const delay = Math.min(reconnectMaxMs, reconnectBaseMs * 2 ** Math.min(this.#round++, 30));
    const jittered = delay * (1 + JITTER * (2 * random.float() - 1));
    this.#timer = clock.setTimer(jittered, () => this.#startRound());
  }

  #limitMs(servers: number): number {
    const { connectTimeoutMs, sessionTimeoutMs } = this.#settings;
    return connectTimeoutMs ?? Math.max(LEAST_LIMIT, sessionTimeoutMs / Math.max(1, servers));
  }
}
