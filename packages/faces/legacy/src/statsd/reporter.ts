import type { Clock, Timer } from "@nodeyard/runtime";
import type { Counters } from "@nodeyard/telemetry";
import { linesOf, type StatsdSample } from "./lines.ts";
import { samplesOf } from "./samples.ts";

/** Between two reports of changes, at least, milliseconds (docs/contract/operations.md, "Figures of the whole"). */
const CHANGES_MS = 1_000;
/** Everything is sent again as often, changed or not, milliseconds. */
const HEARTBEAT_MS = 10_000;

/** Takes lines for a statsd server; never fails and never waits. */
export interface LineSink {
  send(lines: readonly string[]): void;
}

/** What a reporter reads and where it writes. */
export interface ReporterParts {
  readonly clock: Clock;
  readonly sink: LineSink;
  readonly counters: Counters;
  /** Gauges of this process. */
  readonly own: () => readonly StatsdSample[];
  /** Gauges of the whole tree, which the elected launcher sends; absent: none. */
  readonly shared?: {
    /** Whether this process is the one. */
    readonly leading: () => boolean;
    readonly gauges: () => readonly StatsdSample[];
  };
}

/** Sends to a statsd server: counters and timers at once, gauges a second after a change, and all gauges every ten seconds. */
export class StatsdReporter {
  readonly #parts: ReporterParts;
  readonly #own = new LastSent();
  readonly #shared = new LastSent();
  readonly #unlisten: () => void;
  #heartbeat: Timer;
  /** Set while a report of changes is due; more changes until then are in the same report. */
  #soon: Timer | undefined;
  #closed = false;

  constructor(parts: ReporterParts) {
    this.#parts = parts;
    const { counters, sink } = parts;
    this.#unlisten = counters.onSample((sample) => {
      const lines = samplesOf(sample).flatMap(linesOf);
      if (lines.length > 0) sink.send(lines);
    });
    this.#heartbeat = this.#nextHeartbeat();
    this.changed();
  }

  /** A gauge may have changed, or who leads. Cheap to call: most calls find a report that is due already. */
  changed(): void {
    if (this.#soon !== undefined || this.#closed) return;
    this.#soon = this.#parts.clock.setTimer(
      CHANGES_MS,
      () => {
        this.#soon = undefined;
        this.#report(false);
      },
      { background: true },
    );
  }

  /** Sends nothing more. The sink is closed by its owner. */
  close(): void {
    this.#closed = true;
    this.#unlisten();
    this.#heartbeat.cancel();
    this.#soon?.cancel();
  }

  #nextHeartbeat(): Timer {
    return this.#parts.clock.setTimer(
      HEARTBEAT_MS,
      () => {
        this.#report(true);
        this.#heartbeat = this.#nextHeartbeat();
      },
      { background: true },
    );
  }

  /** Sends what is worth sending. Whether this process leads is asked each time, since leaderships end without a call. */
  #report(heartbeat: boolean): void {
    const { own, shared, sink } = this.#parts;
    // Kept apart from the shared ones: these are forgotten when another launcher leads.
    const worth = [...this.#own.worth(own(), heartbeat)];
    if (shared?.leading() === true) worth.push(...this.#shared.worth(shared.gauges(), heartbeat));
    else this.#shared.forget();
    const lines = worth.flatMap(linesOf);
    if (lines.length > 0) sink.send(lines);
  }
}

/**
 * Chooses the gauges to send: those that changed since they were sent last, all of them at a heartbeat (servers expire idle gauges), and
 * a last zero for gauges that have disappeared.
 */
class LastSent {
  /** The last value that was sent, by key. */
  readonly #values = new Map<string, number>();

  /** `all`: all current gauges. */
  worth(all: readonly StatsdSample[], heartbeat: boolean): readonly StatsdSample[] {
    const gone = new Set(this.#values.keys());
    const worth: StatsdSample[] = [];
    for (const sample of all) {
      gone.delete(sample.key);
      if (!heartbeat && this.#values.get(sample.key) === sample.value) continue;
      this.#values.set(sample.key, sample.value);
      worth.push(sample);
    }
    for (const key of gone) {
      this.#values.delete(key);
      // Without a limit there is no number that would say so.
      if (!key.startsWith("nodepool.tenant_limits.")) worth.push({ key, type: "g", value: 0 });
    }
    return worth;
  }

  /** Another process reports them from now on. */
  forget(): void {
    this.#values.clear();
  }
}
