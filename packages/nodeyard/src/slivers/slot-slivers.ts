import { abortable, DriverError } from "@nodeyard/driver";
import { gone, granted, mapError, running, SliverHost } from "@nodeyard/driver-sliver/hosts";
import { type Clock, deadline, messageOf, type Random } from "@nodeyard/runtime";
import {
  type NodeReport,
  type Rspec,
  type SigningKeys,
  type SliverClient,
  type SliverSpecInput,
  SliverUnreachableError,
} from "@nodeyard/sliver-protocol";

/** For a machine to say what it has, and to learn of new keys; milliseconds. */
const OPEN_MS = 30_000;

/** The way to sliver managers, and what signs for them. */
export interface SliverAccess {
  /** To the control account of a machine; nothing is called yet. */
  connect(at: Pick<BackingHost, "host" | "port" | "hostKeys">): SliverClient;
  /** As they are now: they may have been rotated. Throws KeyFileError. */
  keys(): SigningKeys;
}

/** A backing node as a sliver host. */
export interface BackingHost {
  /** Node id in the tree. */
  readonly id: string;
  readonly host: string;
  readonly port: number;
  readonly hostKeys: readonly string[];
  /** Of its present use as a backing node: the same for every launcher, and higher than in any earlier use. */
  readonly epoch: number;
}

/** What a slot of a label is given. */
export interface SlotIsolation {
  readonly rspec: Readonly<Partial<Rspec>>;
  /** Name or digest, as the machine knows images; null: its default. */
  readonly image: string | null;
  readonly initscript: string;
  /** Who may log in, `type base64` each. */
  readonly authorizedKeys: readonly string[];
}

/** How to log in to a slot. */
export interface SlotLogin {
  readonly username: string;
  readonly host: string;
  readonly port: number;
}

export interface SlotSliversOptions {
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
  add(at: BackingHost, node: string, want: SlotIsolation, signal: AbortSignal): Promise<void> {
    return this.#with(at, signal, async (host) => {
      const name = sliverName(node);
      const spec = this.#specOf(at, node, want);
      const report = await host.change((slivers) => {
        // What an earlier use of the machine left behind goes before anyone new comes.
        for (const [other, { tags }] of [...slivers])
          if (tags?.epoch !== String(at.epoch)) slivers.delete(other);
        if (!slivers.has(name)) slivers.set(name, spec);
      }, signal);
      try {
        granted(report, name);
      } catch (error) {
        throw roomFor(at, error);
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
      if (slivers.some((one) => one.name === name))
        await host.change((all) => {
          if (all.get(name)?.tags?.node === node) all.delete(name);
        }, signal);
      await host.until((report) => gone(report, name), signal);
    });
  }

  /**
   * Ends slivers whose slot was freed without them. `taken` reads which nodes have a slot there, after the machine was asked what it has:
   * a slot is taken before its sliver is made, so whoever is missing then has none. Resolves with the nodes whose slivers went.
   */
  sweep(
    at: BackingHost,
    taken: () => Promise<ReadonlySet<string>>,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    return this.#with(at, signal, async (host) => {
      const { slivers } = await host.status(signal);
      if (slivers.length === 0) return [];
      const alive = await taken();
      const stray = slivers.filter(
        ({ tags }) => tags.epoch === String(at.epoch) && !alive.has(tags.node ?? ""),
      );
      if (stray.length === 0) return [];
      const names = new Map(stray.map(({ name, generation }) => [name, generation]));
      const ended = new Set<string>();
      await host.change((all) => {
        ended.clear();
        for (const [name, spec] of [...all])
          if (names.get(name) === spec.generation && all.delete(name)) ended.add(spec.tags?.node ?? name);
      }, signal);
      return [...ended];
    });
  }

  /** The way to a machine that is no backing node any more. */
  forget(id: string): void {
    this.#hosts.delete(id);
  }

  close(): void {
    this.#closed.abort(new DriverError("transient", `provider ${this.#options.provider} is closed`));
    this.#hosts.clear();
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
    this.#mayTake(at, report);
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

  /** A higher epoch alone does not make a machine ours: somebody else's slivers on it would end. */
  #mayTake(at: BackingHost, { node, writer, slivers, safeMode, unlisted }: NodeReport): void {
    const foreign = slivers.filter(({ tags }) => tags.installation !== this.#options.installation);
    if (writer !== undefined && writer !== this.#writer && slivers.length > 0)
      throw new DriverError(
        "configuration",
        `backing node ${at.id} (${at.host}): ${writer} has ${slivers.length} slivers on it; end those first, or take the machine out of one of the two`,
      );
    if (foreign.length > 0)
      throw new DriverError(
        "configuration",
        `backing node ${at.id} (${at.host}): sliver ${foreign[0]!.name} on it is not of this installation; end it first`,
      );
    if (safeMode && unlisted.length > 0)
      throw new DriverError(
        "configuration",
        `backing node ${at.id} (${at.host}): ${node} lost its store and still has ${unlisted.length} slivers; restore its store, or end them with: sliverd --dismantle`,
      );
  }

  get #writer(): string {
    return `metastatic:${this.#options.installation}:${encodeURIComponent(this.#options.provider)}`.slice(
      0,
      200,
    );
  }

  #specOf(at: BackingHost, node: string, want: SlotIsolation): SliverSpecInput {
    const { installation, provider } = this.#options;
    return {
      name: sliverName(node),
      // Node ids only grow.
      generation: Number(node),
      instantiation: "plc-instantiated",
      keys: [...want.authorizedKeys],
      ...(want.image === null ? {} : { image: want.image }),
      initscript: want.initscript,
      rspec: { ...want.rspec },
      tags: { installation, provider: provider.slice(0, 256), node, backing: at.id, epoch: String(at.epoch) },
    };
  }
}

/** Node ids are digits. */
function sliverName(node: string): string {
  return `n${node}`;
}

/**
 * A sliver's own address is known to its machine only. Where that publishes a port for it, the address is the machine's; without one
 * it is reached only by a launcher on the same machine.
 */
function loginAt(
  { host, id }: BackingHost,
  login: {
    readonly user: string;
    readonly address: string;
    readonly port: number;
    readonly published?: number;
  },
): SlotLogin {
  if (login.published !== undefined) return { username: login.user, host, port: login.published };
  if (isLoopback(host)) return { username: login.user, host: login.address, port: login.port };
  throw new DriverError(
    "configuration",
    `backing node ${id} (${host}): nobody outside of it reaches its slivers; set "inbound" under "isolation" in its sliverd.json`,
  );
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** A slot is only free when nothing of its last sliver is left: what does not fit now does not fit later. */
function roomFor({ id, host }: BackingHost, error: unknown): unknown {
  if (!(error instanceof DriverError) || error.kind !== "quota") return error;
  return new DriverError(
    "configuration",
    `backing node ${id} (${host}) has no room for so many slots: ${error.message}; lower the label's max-parallel-jobs or guarantees`,
    { cause: error },
  );
}

/** What the operator has to do, where somebody has to do something. */
function explained({ id, host }: BackingHost, error: unknown): DriverError {
  const place = `backing node ${id} (${host})`;
  if (error instanceof DriverError) return error;
  if (
    error instanceof SliverUnreachableError &&
    /Permission denied|sliver-forward|no host key/.test(error.message)
  )
    return new DriverError(
      "configuration",
      `${place} is no sliver host of ours; make it one: nodeyard sliverd install ${host} (${messageOf(error)})`,
      { cause: error },
    );
  return mapError(error, place);
}
