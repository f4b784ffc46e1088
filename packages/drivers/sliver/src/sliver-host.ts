import { abortable, backoff, type Clock, DriverError, deadline, type Random, sleep } from "@nodeyard/driver";
import {
  DocumentWriter,
  deliverKeys,
  type Edit,
  type NodeReport,
  type SigningKeys,
  type SliverClient,
  SliverFencedError,
  SliverOwnedError,
  type SliverReport,
  SliverUnreachableError,
  signerOf,
} from "@nodeyard/sliver-protocol";
import { lendingOfPool, withLoans } from "./lending/index.ts";
import { WRITER } from "./names.ts";

export interface SliverHostOptions {
  /** The node id with which the machine was enrolled. */
  readonly name: string;
  readonly client: SliverClient;
  /** Keys that sign documents and that the machine must trust. */
  readonly keys: SigningKeys;
  /** Of the writer: a machine takes no document of a lower epoch than the last one's. */
  readonly epoch: number;
  /** Name of the writer; default: this driver's. */
  readonly writer?: string;
  /** As in MachineAt; default null. */
  readonly address?: string | null;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborts when the provider is closed. */
  readonly closed: AbortSignal;
}

/** Address at which a client logs in to a sliver. */
export interface Door {
  readonly user: string;
  readonly address: string;
  readonly port: number;
  /** A port of its machine, not an address of its own. */
  readonly published: boolean;
}

/** Time limit of one delivery with all of its attempts, milliseconds. */
const DELIVERY_MS = 30_000;
/** Time limit of a machine's report, milliseconds: a manager has it at hand, and ssh connects within 10 s or gives up. */
const STATUS_MS = 12_000;
/** Longer than the half minute that a manager delays the answer to Watch, milliseconds. */
const WATCH_MS = 45_000;

/**
 * A machine and its sliver manager: reads reports, changes the document, and waits for what a report will say. Nothing of the machine's
 * state is stored here, except its capacity. Errors are those of `@nodeyard/sliver-protocol`, which `mapError` translates, and
 * DriverError where the configuration is at fault.
 */
export class SliverHost {
  readonly name: string;
  readonly #options: SliverHostOptions;
  readonly #writer: DocumentWriter;
  /** `open` has succeeded, so the machine trusts the present keys. */
  #keysKnown = false;
  /** The capacity of the last report. */
  #capacity: NodeReport["capacity"] = {};
  /** The Watch call in progress. A manager with many launches waiting would otherwise have one call for each. */
  #watch: { readonly sequence: number; readonly report: Promise<NodeReport> } | undefined;

  constructor(options: SliverHostOptions) {
    const { name, client, keys, epoch, writer = WRITER, clock, random, closed } = options;
    this.name = name;
    this.#options = options;
    const late = () =>
      new SliverUnreachableError(`${name} did not accept a document within ${DELIVERY_MS} ms`);
    this.#writer = new DocumentWriter({
      client,
      signer: signerOf(keys),
      node: name,
      writer,
      epoch,
      now: () => clock.now(),
      wait: (attempt, signal) => sleep(clock, backoff(random, attempt, 50, 2_000), signal),
      limit: () => deadline(clock, DELIVERY_MS, late, closed),
    });
  }

  /**
   * The address for logging in to a sliver: a port that its machine publishes for it, or its own address, which is reachable from its
   * machine only. Throws DriverError when the machine publishes no port for it.
   */
  door({ login }: SliverReport): Door {
    const { name, address = null } = this.#options;
    if (login === undefined)
      throw new DriverError("configuration", `machine ${name} makes slivers without a login`);
    const { user, published } = login;
    if (address !== null && published !== undefined)
      return { user, address, port: published, published: true };
    if (address === null || isLoopback(address))
      return { user, address: login.address, port: login.port, published: false };
    throw new DriverError(
      "configuration",
      `machine ${name} publishes no ports of its slivers; set isolation.inbound in its sliverd.json`,
    );
  }

  /** Rejects when the machine has another node id, or belongs to another writer. */
  async open(signal: AbortSignal): Promise<NodeReport> {
    const report = await this.usable(signal);
    const { keys, client } = this.#options;
    await deliverKeys(client, keys, report, signal);
    this.#keysKnown = true;
    return report;
  }

  /** The present report of a machine that takes our documents. Rejects as `open`, but writes nothing. `look` sees any other's, too. */
  async usable(signal: AbortSignal, look: (report: NodeReport) => void = () => {}): Promise<NodeReport> {
    const report = await this.status(signal);
    look(report);
    const taken = this.taken(report);
    if (taken !== undefined) throw taken;
    return report;
  }

  /** Why the machine takes no document of ours: another writer has it. */
  taken({ appliedEpoch, writer }: NodeReport): SliverOwnedError | SliverFencedError | undefined {
    const { name, epoch, writer: ours = WRITER } = this.#options;
    if (writer !== undefined && writer !== ours && appliedEpoch >= epoch)
      return new SliverOwnedError(name, writer, appliedEpoch, { writer: ours, epoch });
    return appliedEpoch > epoch ? new SliverFencedError(name, epoch, appliedEpoch, writer) : undefined;
  }

  /** The present report. Throws "configuration" when another machine answers at the address. A machine without an answer is unreachable. */
  async status(signal: AbortSignal): Promise<NodeReport> {
    const { name, client, clock } = this.#options;
    const late = () => new SliverUnreachableError(`${name} did not answer within ${STATUS_MS} ms`);
    using limit = deadline(clock, STATUS_MS, late, signal);
    const report = await abortable(client.status(limit.signal), limit.signal);
    this.#capacity = report.capacity;
    if (report.node === name) return report;
    throw new DriverError(
      "configuration",
      `the machine that is configured as ${name} was enrolled as ${report.node}; give it that name, or correct its address`,
    );
  }

  /** As of SliverClient. */
  console(sliver: string, signal: AbortSignal): Promise<string | null> {
    return this.#options.client.console(sliver, signal);
  }

  /** Applies a change. It is durable on the machine when the promise resolves. */
  async change(edit: Edit, signal: AbortSignal): Promise<NodeReport> {
    // A machine that was offline when the provider opened may not have the present key set.
    if (!this.#keysKnown) await this.open(signal);
    return this.#writer.change(edit, signal);
  }

  /** The same, with the loans that follow from the change, if slivers lend by their tags. */
  changeOfPool(edit: Edit, signal: AbortSignal): Promise<NodeReport> {
    // Evaluated when the edit is called, after `change` has opened the machine, so that the capacity is known.
    const withThem: Edit = (slivers, now) => withLoans(edit, lendingOfPool(this.#capacity), {})(slivers, now);
    return this.change(withThem, signal);
  }

  /** Lends what has become free. Nothing waits for it, and errors are ignored. */
  relend(): void {
    this.changeOfPool(() => undefined, this.#options.closed).catch(() => undefined);
  }

  /** Resolves with the first value that `check` returns for a report. While the machine does not answer, it is tried again. */
  async until<T>(check: (report: NodeReport) => T | undefined, signal: AbortSignal): Promise<T> {
    const { clock, random } = this.#options;
    let sequence: number | undefined;
    for (let failures = 0; ; ) {
      try {
        const report = await (sequence === undefined ? this.status(signal) : this.#next(sequence, signal));
        const found = check(report);
        if (found !== undefined) return found;
        sequence = report.sequence;
        failures = 0;
      } catch (error) {
        if (signal.aborted || !(error instanceof SliverUnreachableError)) throw error;
        await sleep(clock, backoff(random, failures++, 250, 5_000), signal);
      }
    }
  }

  /** Shares one Watch call between all callers that wait for the same sequence. */
  #next(sequence: number, signal: AbortSignal): Promise<NodeReport> {
    if (this.#watch?.sequence !== sequence) {
      const { client, clock, closed, name } = this.#options;
      const late = () => new SliverUnreachableError(`${name} did not answer within ${WATCH_MS} ms`);
      const limit = deadline(clock, WATCH_MS, late, closed);
      const forget = () => {
        limit.cancel();
        if (this.#watch?.report === report) this.#watch = undefined;
      };
      const report = client.watch(sequence, limit.signal).finally(forget);
      report.catch(() => undefined);
      this.#watch = { sequence, report };
    }
    return abortable(this.#watch.report, signal);
  }
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}
