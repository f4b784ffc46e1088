import type { HostAndPort } from "../connection-string.ts";
import { ZooKeeperError } from "../errors.ts";
import type { Endpoint, Timer } from "../types.ts";
import { resolveRound } from "./hosts.ts";
import type { Settings } from "./settings.ts";

/** How an attempt ended, maybe long after it succeeded. */
export interface DialOutcome {
  readonly cause: Error;
  /** It had been ready for operations. */
  readonly ready: boolean;
  /** The server said that the session is over: it takes a new one at once. */
  readonly expired: boolean;
}

export interface DialerCallbacks {
  /** Tries one server; `done` is called once, when that connection is over. */
  attempt(endpoint: Endpoint, limitMs: number, done: (outcome: DialOutcome) => void): void;
  /** A round over all servers failed. */
  failed(error: Error): void;
}

/** A connection that held for less does not make the next delay start from nothing (milliseconds). */
const STABLE_MS = 1_000;
const LEAST_LIMIT = 1_000;
const JITTER = 0.4;

/** Keeps a connection up: every server in turn, then a delay that doubles with each round. */
export class Dialer {
  /** Used from the next round on. */
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
    // A resolver that hangs must not stop everything: the round is given up and begun anew.
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
        // The first break comes for free; one right after it waits, so that nobody is stormed.
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
