import {
  abortable,
  type Backings,
  type Clock,
  cacheText,
  DriverError,
  deadline,
  type NodeUse,
  type Random,
  type SliverMachine,
  type StepContext,
} from "@nodeyard/driver";
import {
  type CacheUser,
  type Door,
  demandOwnCaches,
  FREE,
  gone,
  granted,
  leaveCaches,
  machineOf,
  markUse,
  POLICY,
  rest,
  running,
  SliverHost,
  type SliverSettings,
  settled,
  shownMachine,
  specOf,
  wake,
  withLoans,
} from "@nodeyard/driver-sliver/parts";
import {
  type Edit,
  type NodeReport,
  type SigningKeys,
  type SliverClient,
  SliverUnreachableError,
} from "@nodeyard/sliver-protocol";
import { type BackingHost, capacityError, explained, mayTake } from "./backing-host.ts";
import { lendingOfPlaces } from "./places.ts";

/** Time limit for a machine's report and for bringing its key set up to date; milliseconds. */
const OPEN_MS = 30_000;

/** Access to sliver managers, and the keys that sign documents for them. */
export interface SliverAccess {
  /** A client for the control account of a machine. It makes no call yet. */
  connect(at: Pick<BackingHost, "host" | "port" | "hostKeys">): SliverClient;
  /** The current signing keys, read anew because they may have been rotated. Throws KeyFileError. */
  keys(): SigningKeys;
}

interface SlotSliversOptions {
  readonly access: SliverAccess;
  readonly installation: string;
  readonly provider: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly noteCaches: Backings["noteCaches"];
}

/**
 * Slivers for slots of backing nodes. All launchers of a provider write to a backing node under one name and epoch. Each changes only the
 * slivers of its own nodes: when another launcher wrote in between, the document is read again. Decisions depend on the machine's report
 * only; this object remembers nothing but connections.
 */
export class SlotSlivers {
  readonly #options: SlotSliversOptions;
  /** By node id. `key` is all that a connection depends on; with another key the machine is opened again. */
  readonly #hosts = new Map<string, { readonly key: string; readonly host: Promise<SliverHost> }>();
  /** Ends calls that no caller waits for. */
  readonly #closed = new AbortController();

  constructor(options: SlotSliversOptions) {
    this.#options = options;
  }

  /** Adds a sliver, durably when the promise resolves. `traceparent`: of its launch, if that is traced. Rejects with DriverError. */
  add(
    at: BackingHost,
    node: string,
    {
      traceparent,
      user,
      ...want
    }: SliverSettings & {
      readonly traceparent?: string | undefined;
      readonly user?: CacheUser;
    },
    signal: AbortSignal,
  ): Promise<void> {
    return this.#with(at, signal, async (host) => {
      const name = sliverName(node);
      // Generations must grow, and node ids do.
      const spec = specOf(
        want,
        { name, generation: Number(node) },
        { ...this.#tagsAt(at), node },
        traceparent,
        user,
      );
      const add: Edit = (slivers) => {
        // Slivers of an earlier use of the machine are ended before a new sliver is added.
        for (const [other, { tags }] of [...slivers])
          if (tags?.epoch !== String(at.epoch)) slivers.delete(other);
        if (!slivers.has(name)) slivers.set(name, spec);
      };
      const report = await this.#change(host, at, add, signal);
      try {
        granted(report, name);
      } catch (error) {
        throw capacityError(at, error);
      }
    });
  }

  /** Resolves when the sliver accepts logins. Rejects with DriverError. */
  started(at: BackingHost, node: string, signal: AbortSignal): Promise<Door> {
    return this.#with(at, signal, async (host) => {
      return host.door(await host.until((report) => running(report, sliverName(node)), signal));
    });
  }

  /** The end of the sliver's console; null: it has none. Rejects with DriverError. */
  console(at: BackingHost, node: string, signal: AbortSignal): Promise<string | null> {
    return this.#with(at, signal, (host) => host.console(sliverName(node), signal));
  }

  /** The machine for people, as it is: nothing is changed on it. One that does not answer has an error. Rejects only with the reason of `signal`. */
  machine(at: BackingHost, signal: AbortSignal): Promise<SliverMachine> {
    const { access, installation, provider, clock } = this.#options;
    return machineOf(at.id, clock, signal, async (within) => {
      const report = await access.connect(at).status(within);
      return { ...shownMachine(report, { owner: { installation, provider } }), name: at.id };
    });
  }

  /** Resolves when the machine has removed all resources of the sliver. Rejects with DriverError. */
  remove(at: BackingHost, node: string, context: StepContext): Promise<void> {
    const { signal } = context;
    return this.#with(at, signal, async (host) => {
      const name = sliverName(node);
      const edits = { changeOfPool: (edit: Edit) => this.#change(host, at, edit, signal) };
      if (context.returned !== undefined)
        await leaveCaches(
          { ...edits, status: (ends) => host.status(ends), until: (holds, ends) => host.until(holds, ends) },
          name,
          context,
        );
      const { slivers } = await host.status(signal);
      const leave: Edit = (all) => {
        if (all.get(name)?.tags?.node === node) all.delete(name);
      };
      if (slivers.some((one) => one.name === name)) await this.#change(host, at, leave, signal);
      this.#noteCaches(at, await host.until((report) => gone(report, name) && report, signal));
      // The freed amounts are lent to other slots. The caller does not wait for it; the next sweep repeats it after a failure.
      if (at.lending !== undefined)
        this.#change(host, at, () => undefined, this.#closed.signal).catch(() => undefined);
    });
  }

  /** To be called while the node is ready and not assigned: its slot lends from now on. Rejects with DriverError. */
  idle(at: BackingHost, node: string, signal: AbortSignal): Promise<void> {
    return this.#with(at, signal, async (host) => {
      await this.#change(host, at, rest(sliverName(node)), signal);
    });
  }

  /** Before the node is assigned: resolves when the slot, if it `lends`, lends nothing and the kernel has applied that. */
  recall(at: BackingHost, node: string, lends: boolean, context: StepContext): Promise<void> {
    const { signal } = context;
    return this.#with(at, signal, async (host) => {
      const name = sliverName(node);
      const there = (await host.status(signal)).slivers.find((one) => one.name === name);
      if (there !== undefined) demandOwnCaches(there, context);
      if (!lends) return;
      await this.#change(host, at, wake(name), signal);
      await host.until((report) => settled(report, name), signal);
    });
  }

  /**
   * Ends slivers whose slot was freed without them, and lets slots of unused nodes lend. `uses` reads which nodes have a slot. It is called
   * after the machine's report: a slot is claimed before its sliver is made, so a sliver of the report without a slot has lost it. A node
   * is assigned before its sliver is changed. Resolves to the nodes whose slivers were ended.
   */
  sweep(
    at: BackingHost,
    uses: () => Promise<ReadonlyMap<string, NodeUse>>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    return this.#with(at, signal, async (host) => {
      const report = await host.status(signal);
      const { slivers } = report;
      this.#noteCaches(at, report);
      if (slivers.length === 0) return [];
      const known = await uses();
      const ours = slivers.filter(({ name, tags }) => tags.epoch === String(at.epoch) && name !== FREE);
      const stray = ours.filter(({ tags }) => !known.has(tags.node ?? ""));
      const lends = slivers.some(({ loans }) => loans.some(({ by }) => by === POLICY));
      if (stray.length === 0 && !lends && at.lending === undefined) return [];
      const names = new Map(stray.map(({ name, generation }) => [name, generation]));
      const seen = new Map(ours.map((one) => [one.name, one]));
      const ended = new Set<string>();
      // May be called several times, each time with the newest document, so it begins with an empty result.
      const compare: Edit = (all) => {
        ended.clear();
        for (const [name, spec] of [...all]) {
          if (names.get(name) === spec.generation && all.delete(name)) ended.add(spec.tags?.node ?? name);
          else if (at.lending !== undefined)
            all.set(name, markUse(spec, seen.get(name), known.get(spec.tags?.node ?? "")));
        }
      };
      await this.#change(host, at, compare, signal);
      return [...ended];
    });
  }

  /** Forgets connections to machines that are no backing nodes any more. */
  keep(ids: ReadonlySet<string>): void {
    for (const id of this.#hosts.keys()) if (!ids.has(id)) this.#hosts.delete(id);
  }

  close(): void {
    this.#closed.abort(new DriverError("transient", `provider ${this.#options.provider} is closed`));
    this.#hosts.clear();
  }

  /** Those of this installation; a job of another one has no use for them. */
  #noteCaches({ id }: BackingHost, { caches = [] }: NodeReport): void {
    const { installation, noteCaches } = this.#options;
    const ours = caches.filter(({ key }) => key[0] === installation);
    noteCaches(id, new Set(ours.map(({ name, key: [, ...key] }) => cacheText(name, key))));
  }

  /** Every change of a machine's slivers also computes the loans between its slots. */
  #change(host: SliverHost, at: BackingHost, edit: Edit, signal: AbortSignal): Promise<NodeReport> {
    const lending = at.lending === undefined ? undefined : lendingOfPlaces(at.lending);
    return host.change(withLoans(edit, lending, this.#tagsAt(at)), signal);
  }

  /** Runs `work` on the machine. Errors become DriverErrors that name the backing node; an abort stays as it is. */
  async #with<T>(at: BackingHost, signal: AbortSignal, work: (host: SliverHost) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#host(at, signal));
    } catch (error) {
      if (signal.aborted) throw error;
      throw explained(at, error);
    }
  }

  /** One host object per machine, so that changes of this process share documents. */
  async #host(at: BackingHost, signal: AbortSignal): Promise<SliverHost> {
    const { keys, ...rest } = { keys: this.#options.access.keys(), ...at };
    const key = JSON.stringify([rest, keys.keySet.version]);
    const known = this.#hosts.get(at.id);
    if (known?.key === key) return abortable(known.host, signal);
    const { clock } = this.#options;
    const late = () => new SliverUnreachableError(`its sliver manager did not answer within ${OPEN_MS} ms`);
    // The time limit belongs to the shared call: the first caller may give up while others wait for the result.
    const limit = deadline(clock, OPEN_MS, late, this.#closed.signal);
    const host = this.#open(at, keys, limit.signal).finally(() => limit.cancel());
    host.catch(() => {
      if (this.#hosts.get(at.id)?.host === host) this.#hosts.delete(at.id);
    });
    this.#hosts.set(at.id, { key, host });
    return abortable(host, signal);
  }

  /** Connects, and makes sure that the machine may be used before anything on it is changed. */
  async #open(at: BackingHost, keys: SigningKeys, signal: AbortSignal): Promise<SliverHost> {
    const { access, clock, random } = this.#options;
    const client = access.connect(at);
    const report = await client.status(signal);
    mayTake(at, report, { installation: this.#options.installation, writer: this.#writer });
    this.#noteCaches(at, report);
    const { epoch } = at;
    const host = new SliverHost({
      name: report.node,
      address: at.host,
      client,
      keys,
      epoch,
      writer: this.#writer,
      clock,
      random,
      closed: this.#closed.signal,
    });
    await host.open(signal);
    return host;
  }

  /** Name of the writer in documents, the same for all launchers of this provider. Managers take 200 characters at most. */
  get #writer(): string {
    return `metastatic:${this.#options.installation}:${encodeURIComponent(this.#options.provider)}`.slice(
      0,
      200,
    );
  }

  /** Tags of every sliver: whose it is, and for which use of the machine (`epoch`) it was made. */
  #tagsAt(at: BackingHost): Readonly<Record<string, string>> {
    const { installation, provider } = this.#options;
    return { installation, provider: provider.slice(0, 256), backing: at.id, epoch: String(at.epoch) };
  }
}

/** Node ids consist of digits; a sliver's name must begin with a letter. */
function sliverName(node: string): string {
  return `n${node}`;
}
