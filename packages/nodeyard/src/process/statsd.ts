import type { Machine } from "../machine/index.ts";
import { StatsdReporter, statsdServer, UdpSink } from "../metrics/index.ts";
import type { Counters, Log } from "../telemetry/index.ts";
import { ProcessError } from "./errors.ts";
import type { Role } from "./role.ts";

/** What a process tells a statsd server. */
export class Statsd {
  readonly #machine: Machine;
  readonly #counters: Counters;
  readonly #sink: UdpSink;
  #reporter: StatsdReporter | undefined;

  /** Undefined where the environment names no server. Throws ProcessError where it does badly. */
  static open(machine: Machine, log: Log, counters: Counters): Statsd | undefined {
    const server = statsdServer(machine.env);
    if (server === undefined) return undefined;
    if ("problem" in server) throw new ProcessError("process.bad_statsd", server.problem);
    log.info(server, "sending metrics to a statsd server");
    return new Statsd(machine, counters, new UdpSink(server, { ...machine, log }));
  }

  private constructor(machine: Machine, counters: Counters, sink: UdpSink) {
    this.#machine = machine;
    this.#counters = counters;
    this.#sink = sink;
  }

  /** From now on it tells of these. */
  tell(roles: readonly Role[]): void {
    this.#reporter?.close();
    const shared = roles.find((role) => role.shared !== undefined)?.shared;
    this.#reporter = new StatsdReporter({
      clock: this.#machine.clock,
      sink: this.#sink,
      counters: this.#counters,
      own: () => roles.flatMap((role) => role.samples()),
      ...(shared && { shared }),
    });
  }

  /** Lines that could not be sent. */
  get lost(): number {
    return this.#sink.lost;
  }

  changed(): void {
    this.#reporter?.changed();
  }

  async close(): Promise<void> {
    this.#reporter?.close();
    await this.#sink.close();
  }
}
