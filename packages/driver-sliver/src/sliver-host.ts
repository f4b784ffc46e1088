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
  /** The node id that the machine was enrolled by. */
  readonly name: string;
  readonly client: SliverClient;
  readonly keys: SigningKeys;
  readonly epoch: number;
  /** Who writes; absent: this driver. */
  readonly writer?: string;
  /** As in MachineAt; absent: null. */
  readonly address?: string | null;
  readonly clock: Clock;
  readonly random: Random;
  /** Aborts when the provider is closed. */
  readonly closed: AbortSignal;
}

/** Where a sliver is logged in to. */
export interface Door {
  readonly user: string;
  readonly address: string;
  readonly port: number;
  /** By a port of its machine, not at an address of its own. */
  readonly published: boolean;
}

/** For one delivery with all of its attempts, milliseconds. */
const DELIVERY_MS = 30_000;
/** Above the half minute that a manager holds a watcher. */
const WATCH_MS = 45_000;

/** One machine and its sliver manager. Nothing of its state is remembered here. */
export class SliverHost {
  readonly name: string;
  readonly #options: SliverHostOptions;
  readonly #writer: DocumentWriter;
  #keysKnown = false;
  /** As it was told last. */
  #capacity: NodeReport["capacity"] = {};
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

  /** Where a client logs in to a sliver. Throws DriverError when no port of the machine leads there. */
  door({ login }: SliverReport): Door {
    const { name, address = null } = this.#options;
    if (login === undefined)
      throw new DriverError("configuration", `machine ${name} makes slivers without a login`);
    const { user, published } = login;
    if (address === null) return { user, address: login.address, port: login.port, published: false };
    if (published !== undefined) return { user, address, port: published, published: true };
    throw new DriverError(
      "configuration",
      `machine ${name} publishes no ports of its slivers; set isolation.inbound in its sliverd.json`,
    );
  }

  /** Rejects when the machine is not the one that is meant, or is another writer's. */
  async open(signal: AbortSignal): Promise<NodeReport> {
    const report = await this.status(signal);
    const { name, epoch, keys, client, writer: ours = WRITER } = this.#options;
    const { appliedEpoch, writer } = report;
    if (writer !== undefined && writer !== ours && appliedEpoch >= epoch)
      throw new SliverOwnedError(name, writer, appliedEpoch, { writer: ours, epoch });
    if (appliedEpoch > epoch) throw new SliverFencedError(name, epoch, appliedEpoch, writer);
    await deliverKeys(client, keys, report, signal);
    this.#keysKnown = true;
    return report;
  }

  async status(signal: AbortSignal): Promise<NodeReport> {
    const { name, client } = this.#options;
    const report = await client.status(signal);
    this.#capacity = report.capacity;
    if (report.node === name) return report;
    throw new DriverError(
      "configuration",
      `the machine that is configured as ${name} was enrolled as ${report.node}; give it that name, or correct its address`,
    );
  }

  /** Durable on the machine when it resolves. */
  async change(edit: Edit, signal: AbortSignal): Promise<NodeReport> {
    // A machine that was away when the provider opened may not know the present key.
    if (!this.#keysKnown) await this.open(signal);
    return this.#writer.change(edit, signal);
  }

  /** The same, with the loans that follow from it where slivers lend by their tags. */
  changeOfPool(edit: Edit, signal: AbortSignal): Promise<NodeReport> {
    // What it has is known when it is called: it opens the machine first.
    const withThem: Edit = (slivers, now) => withLoans(edit, lendingOfPool(this.#capacity), {})(slivers, now);
    return this.change(withThem, signal);
  }

  /** Lends what has become free, where slivers lend and nobody has to wait for that. */
  relend(): void {
    this.changeOfPool(() => undefined, this.#options.closed).catch(() => undefined);
  }

  /** Resolves with what `check` finds, as soon as it finds something; while the machine is away it is waited for. */
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

  /** One call for all who wait for the same. */
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
