import { abortable, type Clock, DriverError, deadline, type NodeUse, type Random } from "@nodeyard/driver";
import {
  type Edit,
  type NodeReport,
  type Rspec,
  type SigningKeys,
  type SliverClient,
  type SliverSpecInput,
  SliverUnreachableError,
  TRACE_TAG,
} from "@nodeyard/sliver-protocol";
import { FREE, lendingOfPlaces, markUse, POLICY, rest, wake, withLoans } from "../lending/index.ts";
import { SliverHost } from "../sliver-host.ts";
import { gone, granted, running, settled } from "../steps.ts";
import {
  type BackingHost,
  capacityError,
  explained,
  loginAt,
  mayTake,
  type SlotLogin,
} from "./backing-host.ts";

/** Time limit for a machine's report and for bringing its key set up to date; milliseconds. */
const OPEN_MS = 30_000;

/** Access to sliver managers, and the keys that sign documents for them. */
export interface SliverAccess {
  /** A client for the control account of a machine. It makes no call yet. */
  connect(at: Pick<BackingHost, "host" | "port" | "hostKeys">): SliverClient;
  /** The present keys, read again because they may have been rotated. Throws KeyFileError. */
  keys(): SigningKeys;
}

/** The settings of a slot's sliver. */
export interface SlotIsolation {
  readonly rspec: Readonly<Partial<Rspec>>;
  /** Name or digest of an image on the machine; null: the machine's default image. */
  readonly image: string | null;
  readonly initscript: string;
  /** Containers may be run in it. */
  readonly nesting?: boolean;
  /** Who may log in, `type base64` each. */
  readonly authorizedKeys: readonly string[];
  /** What its slots may use at most they lend to busy ones while nobody uses them. */
  readonly lends: boolean;
}

interface SlotOrder extends SlotIsolation {
  /** Of the launch, where launches are traced. */
  readonly traceparent?: string | undefined;
}

interface SlotSliversOptions {
  readonly access: SliverAccess;
  readonly installation: string;
  readonly provider: string;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Slivers for slots of backing nodes. Every launcher of a provider writes to a backing node under one name and one epoch, and changes
 * the slivers of its own nodes only: what was taken in between is read again. All is decided by what the machine has; nothing of it is
 * remembered here but the way there.
 */
export class SlotSlivers {
  readonly #options: SlotSliversOptions;
  readonly #hosts = new Map<string, { readonly key: string; readonly host: Promise<SliverHost> }>();
  readonly #closed = new AbortController();

  constructor(options: SlotSliversOptions) {
    this.#options = options;
  }

  /** Durable on the machine when it resolves. Rejects with DriverError. */
  add(at: BackingHost, node: string, want: SlotOrder, signal: AbortSignal): Promise<void> {
    return this.#with(at, signal, async (host) => {
      const name = sliverName(node);
      const spec = this.#specOf(at, node, want);
      const add: Edit = (slivers) => {
        // What an earlier use of the machine left behind goes before anyone new comes.
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

  /** Resolves when it can be logged in to. Rejects with DriverError. */
  started(at: BackingHost, node: string, signal: AbortSignal): Promise<SlotLogin> {
    return this.#with(at, signal, async (host) => {
      const { login } = await host.until((report) => running(report, sliverName(node)), signal);
      if (login === undefined) throw new DriverError("fatal", `node ${node}: its sliver has no SSH server`);
      return loginAt(at, login);
    });
  }

  /** Resolves when nothing of it is left on the machine. Rejects with DriverError. */
  remove(at: BackingHost, node: string, signal: AbortSignal): Promise<void> {
    return this.#with(at, signal, async (host) => {
      const name = sliverName(node);
      const { slivers } = await host.status(signal);
      const leave: Edit = (all) => {
        if (all.get(name)?.tags?.node === node) all.delete(name);
      };
      if (slivers.some((one) => one.name === name)) await this.#change(host, at, leave, signal);
      await host.until((report) => gone(report, name), signal);
      // What is free now is lent. Nobody waits for that, and a sweep makes up for it.
      if (at.lending !== undefined)
        this.#change(host, at, () => undefined, this.#closed.signal).catch(() => undefined);
    });
  }

  /** It is nobody's: from now on it lends. Rejects with DriverError. */
  idle(at: BackingHost, node: string, signal: AbortSignal): Promise<void> {
    return this.#with(at, signal, async (host) => {
      await this.#change(host, at, rest(sliverName(node)), signal);
    });
  }

  /** Before it is handed out: resolves when it lends nothing and the kernel has given back what it lent. Rejects with DriverError. */
  recall(at: BackingHost, node: string, signal: AbortSignal): Promise<void> {
    return this.#with(at, signal, async (host) => {
      const name = sliverName(node);
      await this.#change(host, at, wake(name), signal);
      await host.until((report) => settled(report, name), signal);
    });
  }

  /**
   * Ends slivers whose slot was freed without them, and lets those lend that nobody uses. `uses` reads which nodes have a slot there, after
   * the machine was asked what it has: a slot is taken before its sliver is made, so whoever is missing then has none; and a node is
   * given to somebody before its sliver is told. Resolves with the nodes whose slivers went.
   */
  sweep(
    at: BackingHost,
    uses: () => Promise<ReadonlyMap<string, NodeUse>>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    return this.#with(at, signal, async (host) => {
      const { slivers } = await host.status(signal);
      if (slivers.length === 0) return [];
      const known = await uses();
      const ours = slivers.filter(({ name, tags }) => tags.epoch === String(at.epoch) && name !== FREE);
      const stray = ours.filter(({ tags }) => !known.has(tags.node ?? ""));
      const lends = slivers.some(({ loans }) => loans.some(({ by }) => by === POLICY));
      if (stray.length === 0 && !lends && at.lending === undefined) return [];
      const names = new Map(stray.map(({ name, generation }) => [name, generation]));
      const seen = new Map(ours.map((one) => [one.name, one]));
      const ended = new Set<string>();
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

  /** Forgets the way to machines that are no backing nodes any more. */
  keep(ids: ReadonlySet<string>): void {
    for (const id of this.#hosts.keys()) if (!ids.has(id)) this.#hosts.delete(id);
  }

  close(): void {
    this.#closed.abort(new DriverError("transient", `provider ${this.#options.provider} is closed`));
    this.#hosts.clear();
  }

  /** Every change of a machine's slivers is one of their loans, too. */
  #change(host: SliverHost, at: BackingHost, edit: Edit, signal: AbortSignal): Promise<NodeReport> {
    const lending = at.lending === undefined ? undefined : lendingOfPlaces(at.lending);
    return host.change(withLoans(edit, lending, this.#tagsAt(at)), signal);
  }

  async #with<T>(at: BackingHost, signal: AbortSignal, work: (host: SliverHost) => Promise<T>): Promise<T> {
    try {
      return await work(await this.#host(at, signal));
    } catch (error) {
      if (signal.aborted) throw error;
      throw explained(at, error);
    }
  }

  /** One per machine, so that changes of this process go together. */
  async #host(at: BackingHost, signal: AbortSignal): Promise<SliverHost> {
    const { keys, ...rest } = { keys: this.#options.access.keys(), ...at };
    const key = JSON.stringify([rest, keys.keySet.version]);
    const known = this.#hosts.get(at.id);
    if (known?.key === key) return abortable(known.host, signal);
    const { clock } = this.#options;
    const late = () => new SliverUnreachableError(`its sliver manager did not answer within ${OPEN_MS} ms`);
    // Of its own: whoever asked first may give up, and others wait for the same.
    const limit = deadline(clock, OPEN_MS, late, this.#closed.signal);
    const host = this.#open(at, keys, limit.signal).finally(() => limit.cancel());
    host.catch(() => {
      if (this.#hosts.get(at.id)?.host === host) this.#hosts.delete(at.id);
    });
    this.#hosts.set(at.id, { key, host });
    return abortable(host, signal);
  }

  async #open(at: BackingHost, keys: SigningKeys, signal: AbortSignal): Promise<SliverHost> {
    const { access, clock, random } = this.#options;
    const client = access.connect(at);
    const report = await client.status(signal);
    mayTake(at, report, { installation: this.#options.installation, writer: this.#writer });
    const { epoch } = at;
    const host = new SliverHost({
      name: report.node,
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

  get #writer(): string {
    return `metastatic:${this.#options.installation}:${encodeURIComponent(this.#options.provider)}`.slice(
      0,
      200,
    );
  }

  #specOf(at: BackingHost, node: string, want: SlotOrder): SliverSpecInput {
    const { traceparent } = want;
    return {
      name: sliverName(node),
      // Node ids only grow.
      generation: Number(node),
      instantiation: "plc-instantiated",
      keys: [...want.authorizedKeys],
      ...(want.image === null ? {} : { image: want.image }),
      initscript: want.initscript,
      ...(want.nesting === true ? { nesting: true } : {}),
      rspec: { ...want.rspec },
      tags: { ...this.#tagsAt(at), node, ...(traceparent === undefined ? {} : { [TRACE_TAG]: traceparent }) },
    };
  }

  #tagsAt(at: BackingHost): Readonly<Record<string, string>> {
    const { installation, provider } = this.#options;
    return { installation, provider: provider.slice(0, 256), backing: at.id, epoch: String(at.epoch) };
  }
}

/** Node ids are digits. */
function sliverName(node: string): string {
  return `n${node}`;
}
