import { Controller, Election, withRoot } from "@nodeyard/coordination";
import type { InventoryItem } from "@nodeyard/driver";
import { encodeNode, firstLine, newNode, paths, type StandingFact, standingFact } from "@nodeyard/model";
import type { StandingCode } from "@nodeyard/operations";
import { backoff, messageOf } from "@nodeyard/runtime";
import { treeSeconds } from "@nodeyard/tree";
import type { OpenProvider } from "../handles.ts";
import type { RecordHandles } from "../held-records.ts";
import { lockNode, takeOut } from "../nodes/node-lock.ts";
import { claimHost } from "./host-claims.ts";
import { probeInTime } from "./probe.ts";
import { planSlots } from "./slots.ts";

/** Hosts contacted at once. Configurations have thousands of hosts, and each probe holds a connection until its time is over. */
const PROBES_AT_ONCE = 32;
/** The slow comparison, and the longest pause before a host that did not answer is asked again, milliseconds. */
const RESYNC_MS = 60_000;
/** Changes that come together are handled together. */
const GATHER_MS = 20;
/** Milliseconds from a record that became free to the comparison. */
const FREED_MS = 1_000;

/**
 * Keeps a provider's inventory registered: one ready record for each slot of each host that answers. Of several launchers
 * with one inventory only the elected one does it. Level-triggered: it compares what should be with what is, whenever
 * a record of the provider goes, and every minute.
 */
export class InventoryKeeper {
  readonly #context: RecordHandles;
  readonly #open: OpenProvider;
  readonly #election: Election;
  readonly #controller: Controller;
  /** Called when a host answers, or no longer does. */
  readonly #onChange: () => void;
  /** Hosts that cannot be registered, by key: why, since when (tree time), and not before `at` again. */
  readonly #silent = new Map<
    string,
    {
      readonly at: number;
      readonly attempt: number;
      readonly code: StandingCode;
      readonly why: string;
      readonly since: number;
    }
  >();
  /** Keys of the hosts that lack a record, as compared last; undefined: another launcher leads, or nothing was compared yet. */
  #lacking: ReadonlySet<string> | undefined;
  /** The term for which the view is known to hold what the leader before us wrote, and the one for which it is being compared. */
  #caughtUp: string | undefined;
  #catchingUp: string | undefined;
  /** Paths of the unreadable records that were logged last. */
  #doubtful = "";

  constructor(context: RecordHandles, open: OpenProvider, onChange: () => void) {
    this.#context = context;
    this.#open = open;
    this.#onChange = onChange;
    const { name: provider } = open.config;
    this.#controller = new Controller(context, {
      name: `inventory of ${provider}`,
      site: "launcher/providers/inventory.ts",
      resyncMs: RESYNC_MS,
      reconcile: (signal) => this.#reconcile(signal),
      failed: (error) => {
        context.log.error({ provider, error: messageOf(error) }, "cannot reconcile an inventory; will retry");
        return this.#pause();
      },
    });
    this.#election = new Election(context, `inventory:${open.config.name}`, () => this.wake());
  }

  /** Called when the pools of the provider are registered. */
  start(): void {
    this.#election.start();
    this.wake();
  }

  /** Something changed: reconciles within a few milliseconds, together with other changes. */
  wake(): void {
    this.#controller.wake(GATHER_MS);
  }

  /** A record became free. Not at once: it may be one that this launcher let go because it could not write it. */
  wakeForFree(): void {
    this.#controller.wake(FREED_MS);
  }

  /** Ends the leadership and resolves when no probe or write is under way. */
  async close(): Promise<void> {
    const ended = this.#controller.close();
    await this.#election.close();
    await ended;
  }

  /** How the hosts stand; empty while another launcher leads. */
  facts(): readonly StandingFact[] {
    const lacking = this.#lacking;
    if (lacking === undefined) return [];
    const { clock, ages } = this.#context;
    const { name: provider } = this.#open.config;
    return this.#open.provider.inventory().map(({ key, labels }) => {
      const [name, silent] = [`${provider}/${key}`, this.#silent.get(key)];
      const about = { provider, labels: [...labels] };
      if (!lacking.has(key)) return standingFact("host", name, "good", "host.registered", about);
      if (silent === undefined) return standingFact("host", name, "unknown", "host.waiting", about);
      const nextTry = Math.round(ages.now() + Math.max(0, silent.at - clock.monotonic()));
      const { since, code } = silent;
      return standingFact("host", name, "failing", code, {
        ...about,
        since,
        cause: firstLine(silent.why),
        nextTry,
      });
    });
  }

  /** Milliseconds until the first of the hosts that did not answer is asked again. */
  #pause(): number | undefined {
    const now = this.#context.clock.monotonic();
    const next = [...this.#silent.values()].map(({ at }) => at - now).filter((pause) => pause > 0);
    return next.length === 0 ? undefined : Math.min(...next);
  }

  /** Compares and acts once. Resolves with the pause until a host that did not answer is due. */
  async #reconcile(stop: AbortSignal): Promise<number | undefined> {
    const { view } = this.#context;
    // The leader probes hosts that did not answer; a launcher that no longer leads forgets its pauses.
    if (!this.#election.leading) {
      this.#silent.clear();
      this.#note(undefined);
    }
    if (!view.complete || !this.#leads()) return undefined;
    const { name } = this.#open.config;
    const nodes = [...view.nodes.byProvider.get(name)].map((id) => view.nodes.byId.get(id)!);
    const plan = planSlots(this.#open.provider.inventory(), nodes, view.unreadable.ofProvider(name));
    this.#logDoubtful(plan.doubtful);
    // Pauses of hosts that need no probe any more are forgotten.
    const lacking = new Set(plan.register.map(({ item }) => item.key));
    for (const key of this.#silent.keys()) if (!lacking.has(key)) this.#silent.delete(key);
    this.#note(lacking);
    await Promise.all(
      plan.deregister.map((id) => takeOut(this.#context, id, "it is no longer in the configuration")),
    );
    const work: (() => Promise<void>)[] = [
      ...plan.register
        .filter(({ item }) => this.#due(item))
        .map(
          ({ item, slots }) =>
            () =>
              this.#register(item, slots, stop),
        ),
      ...plan.update.map(
        ({ item, node }) =>
          () =>
            this.#update(item, node),
      ),
    ];
    await atMost(PROBES_AT_ONCE, work);
    return this.#pause();
  }

  /** Hosts lack records, others than before: how they stand has changed. */
  #note(lacking: ReadonlySet<string> | undefined): void {
    const before = this.#lacking;
    this.#lacking = lacking;
    if (lacking === undefined || before === undefined) {
      if (before !== lacking) this.#onChange();
    } else if ([...lacking].join() !== [...before].join()) this.#onChange();
  }

  /** Logs records that keep slots from being registered, once for the same set of records. */
  #logDoubtful(doubtful: ReadonlySet<string>): void {
    const records = [...doubtful].sort();
    const logged = this.#doubtful;
    this.#doubtful = records.join();
    if (records.length === 0 || logged === this.#doubtful) return;
    const provider = this.#open.config.name;
    this.#context.log.error(
      { provider, records },
      `slots of hosts are not registered while records that may be theirs cannot be read: repair them, or remove them with "nodeyard delete"`,
    );
  }

  /**
   * Whether this launcher leads and its view has everything that the former leader wrote. The view may show the end of a leadership before
   * the last records of the former leader; without the resync, hosts would be registered twice.
   */
  #leads(): boolean {
    const term = this.#term();
    if (term === undefined || term === this.#caughtUp) return term !== undefined;
    if (term === this.#catchingUp) return false;
    this.#catchingUp = term;
    void this.#context.view.resync().then(
      () => {
        this.#caughtUp = term;
        this.wake();
      },
      () => {},
    );
    return false;
  }

  /** Path of our contender while it leads. It differs for each term, so a resync of an earlier term does not count. */
  #term(): string | undefined {
    return this.#election.leading ? this.#election.check().path : undefined;
  }

  #due(item: InventoryItem): boolean {
    const retry = this.#silent.get(item.key);
    return retry === undefined || retry.at <= this.#context.clock.monotonic();
  }

  /** Probes a host once and registers a node for each of its free slots. */
  async #register(item: InventoryItem, slots: readonly number[], stop: AbortSignal): Promise<void> {
    const context = this.#context;
    const probe = await probeInTime(context.clock, this.#open.provider, item, stop);
    if (!probe.alive) return this.#putOff(item, probe.why);
    const { machine } = probe;
    const { connection } = item;
    const { name: provider } = this.#open.config;
    const pool = this.#open.config.pools.find((candidate) => candidate.name === item.pool);
    for (const slot of slots) {
      // A probe may outlast the leadership; the commit below demands it for certain.
      if (!this.#election.leading) return;
      const claim = await claimHost(context, provider, machine.interfaceIp, connection);
      if ("heldBy" in claim)
        return this.#putOff(
          item,
          `provider ${claim.heldBy} has nodes of the same host, port and user; remove it from one of the two`,
          "host.claimed",
        );
      this.#silent.delete(item.key);
      const record = newNode(
        {
          state: "ready",
          provider: this.#open.config.name,
          pool: item.pool,
          // The value that Nodepool's static driver writes.
          launcher: "static driver",
          type: [...item.labels],
          externalId: machine.externalId,
          hostname: machine.hostname ?? null,
          interfaceIp: machine.interfaceIp,
          publicIpv4: machine.publicIpv4 ?? null,
          publicIpv6: machine.publicIpv6 ?? null,
          username: connection.username,
          connectionPort: connection.port,
          connectionType: connection.type,
          pythonPath: connection.pythonPath,
          shellType: connection.shellType,
          hostKeys: machine.hostKeys ?? [],
          attributes: pool?.nodeAttributes ?? null,
          slot,
        },
        treeSeconds(context),
      );
      const data = encodeNode(record);
      const made = { op: "create", path: `${paths.nodes}/`, data, sequential: true } as const;
      const commit = () => context.tree.commit([made, this.#election.check(), claim.op] as const);
      const [{ path }] = await withRoot(context.tree, paths.nodes, commit);
      const node = path.slice(path.lastIndexOf("/") + 1);
      context.journal.write({ event: "node.registered", node, facts: { host: item.key }, record });
    }
  }

  /** The host is not offered now, and is asked again after a pause. */
  #putOff(item: InventoryItem, why: string, code: StandingCode = "host.silent"): void {
    const context = this.#context;
    const before = this.#silent.get(item.key);
    const attempt = (before?.attempt ?? -1) + 1;
    const pause = backoff(context.random, attempt, 5_000, RESYNC_MS);
    const since = before?.since ?? Math.round(context.ages.now());
    this.#silent.set(item.key, { at: context.clock.monotonic() + pause, attempt, why, code, since });
    this.#onChange();
    context.log.warn(
      { provider: this.#open.config.name, host: item.key, why, retryMs: Math.round(pause) },
      "a host is not registered",
    );
  }

  /** Writes changed settings of a host into its node. A node that belongs to another pool now is deleted and registered again. */
  async #update(item: InventoryItem, id: string): Promise<void> {
    const context = this.#context;
    const node = await lockNode(context, id);
    if (typeof node === "string") return;
    const { state, allocatedTo, pool } = node.record;
    // Its user got it in between; the record is updated when it is registered again.
    if (state !== "ready" || allocatedTo !== null) return node.held.release();
    const { connection } = item;
    const patch =
      pool === item.pool
        ? {
            type: [...item.labels],
            shellType: connection.shellType,
            pythonPath: connection.pythonPath,
            connectionType: connection.type,
          }
        : { state: "deleting" as const };
    await node.writeAndRelease(patch).catch(async (error) => {
      await node.held.release();
      throw error;
    });
  }
}

/** Runs `work` with at most `limit` functions at the same time. Rejects with the first failure, after all have ended. */
async function atMost(limit: number, work: readonly (() => Promise<void>)[]): Promise<void> {
  const queue = [...work];
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await next();
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(limit, work.length) }, worker));
  const failed = results.find((result) => result.status === "rejected");
  if (failed !== undefined) throw failed.reason;
}
