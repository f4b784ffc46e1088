import { KeyedController } from "@nodeyard/coordination";
import {
  decodeLease,
  encodeLease,
  LEASES,
  type Lease,
  leaseIdOf,
  leasePath,
  leaseRequestor,
  nodesOfLease,
  paths,
} from "@nodeyard/model";
import { backoff, messageOf } from "@nodeyard/runtime";
import { CommitFailed, FenceLost, orUndefined } from "@nodeyard/tree";
import type { OwnEntry, RequestEntry, ViewEvent } from "@nodeyard/view";
import type { RecordHandles } from "../held-records.ts";
import { Busy, failLease, giveBack, holdNode, jobOf, withdraw } from "./lease-holds.ts";
import { MixedSets, returnParts } from "./mixed-sets.ts";

/**
 * Holds nodes for clients that have no session with the tree: durable contenders named after the lease keep everyone else away, and at
 * expiry or release any launcher returns the nodes. Level-triggered: each wake compares lease, request and nodes as they are, so that
 * it may be cut off anywhere and entered again by any launcher. Every launcher runs one, without election: races end in a refused
 * commit, and the loser looks again.
 */
export class LeaseKeeper {
  readonly #context: RecordHandles;
  readonly #controllers: KeyedController;
  /** Versions of records that cannot be read: each is said once. */
  readonly #unreadable = new Map<string, number>();
  readonly #sets: MixedSets;

  /** `isLimited`: whether a limit counts all nodes of a tenant. */
  constructor(context: RecordHandles, isLimited: (tenant: string) => boolean) {
    this.#context = context;
    this.#sets = new MixedSets(context, isLimited, (id) => this.#controllers.wake(id));
    // Leases that are there already wait for the first sweep.
    context.view.follow((event, isNew) => void (isNew && this.#onEvent(event)));
    this.#controllers = new KeyedController(context, (id) => ({
      name: `lease ${id}`,
      site: "launcher/clients/leases.ts",
      reconcile: () => this.#step(id),
      failed: (error, attempt) => this.#failed(id, error, attempt),
    }));
  }

  /** Only wakes the leases that an event concerns; nothing is decided from the event itself. */
  #onEvent(event: ViewEvent): void {
    if (event.type === "own" && event.path.startsWith(`${LEASES}/`)) {
      const id = event.path.slice(LEASES.length + 1);
      if (event.before === undefined && event.after !== undefined) this.#begins(id, event.after);
      this.#controllers.wake(id);
    } else if (event.type === "request") {
      const lease = leaseIdOf(event.after?.record.requestor ?? event.before?.record.requestor ?? null);
      if (lease !== undefined) this.#controllers.wake(lease);
    } else if (event.type === "complete" && event.complete) this.sweep();
  }

  /** The slow resync: looks at each lease, and at requests and nodes whose lease is gone. */
  sweep(): void {
    const { own, nodes, requests } = this.#context.view;
    for (const path of own.keys()) {
      if (path.startsWith(`${LEASES}/`)) this.#controllers.wake(path.slice(LEASES.length + 1));
    }
    // Nodes that are held for a lease that is gone.
    for (const id of nodes.byLock.get("locked")) {
      const lease = leaseIdOf(nodes.byId.get(id)?.record.requestor ?? null);
      if (lease !== undefined && !own.has(leasePath(lease))) this.#controllers.wake(lease);
    }
    // The request may have appeared after its lease was deleted, while the view was incomplete. Then no further event comes for it.
    for (const requestor of requests.byRequestor.keys()) {
      const lease = leaseIdOf(requestor);
      if (lease !== undefined && !own.has(leasePath(lease))) this.#controllers.wake(lease);
    }
  }

  close(): void {
    void this.#controllers.close();
  }

  /** Every launcher serves every lease, so losing a race to another launcher is no error. Returns the pause before the next try. */
  #failed(id: string, error: unknown, attempt: number): number {
    const { log, random } = this.#context;
    const pause = backoff(random, attempt, 500, 60_000);
    // After five failures in a row it was not only a lost race.
    const overtaken = error instanceof FenceLost || error instanceof CommitFailed || error instanceof Busy;
    const level = overtaken && attempt < 5 ? "debug" : "warn";
    const facts = { lease: id, attempt, retryMs: Math.round(pause), error: messageOf(error) };
    log[level](facts, "cannot process a lease; will retry");
    return pause;
  }

  /** One step towards what the lease should be. Returns after how many milliseconds to look again, if by time. */
  async #step(id: string): Promise<number | undefined> {
    const { view } = this.#context;
    if (!view.complete) return undefined;
    const entry = view.own.get(leasePath(id));
    if (entry === undefined) return this.#forget(id);
    const lease = this.#decode(id, entry);
    if (lease === undefined) return undefined;
    if (lease.state !== "gathering") this.#sets.forget(id);
    const { ages } = this.#context;
    const left = this.#left(lease);
    // Set by its client, or by a launcher that stopped before it had taken back the nodes.
    if (lease.state === "released") return this.#end(lease, entry);
    // After a jump of the clock no lease ends by time until the time is known again.
    if (left <= 0 && ages.trusted) return this.#expire(lease, entry);
    if (lease.state === "waiting") await this.#grant(lease, entry);
    const again =
      lease.state === "gathering" ? await this.#sets.step(lease, entry) : Number.POSITIVE_INFINITY;
    if (lease.state === "failed") await this.#returnParts(lease, entry);
    // Clocks are read in fractions: without a whole millisecond it would wake at the very moment, over and over.
    // One that is overdue while the clock is not trusted is looked at again with each sweep anyway.
    return Math.ceil(Math.min(left > 0 ? left : 60_000, again));
  }

  /** A set that has failed holds nothing any more. */
  async #returnParts(lease: Lease, { path, data, version }: OwnEntry): Promise<void> {
    if (lease.set === null || nodesOfLease(lease).length === 0) return;
    await returnParts(this.#context, lease);
    const parts = lease.set.parts.map(({ label }) => ({ label, nodes: [], asked: null }));
    const empty = encodeLease({ ...lease, set: { ...lease.set, parts } }, data);
    await this.#context.tree.set(path, empty, { version });
  }

  /**
   * The rest of a lease, milliseconds. A lease is a duration that runs by the monotonic clock from the moment at which this process saw
   * it first. So a clock that is set forward does not end it early, and one that is set back does not prolong it.
   */
  #left({ id, created, expires }: Lease): number {
    const { ages, clock } = this.#context;
    return ages.stored(leasePath(id), expires, expires - created) - clock.monotonic();
  }

  /** It was made before our eyes: it runs from now on, whatever time it is to its client or to the server that stored it. */
  #begins(id: string, entry: OwnEntry): void {
    const { ages, view } = this.#context;
    const lease = view.complete ? this.#decode(id, entry) : undefined;
    if (lease !== undefined) ages.saw(leasePath(id), lease.expires, lease.expires - lease.created);
  }

  #decode(id: string, entry: OwnEntry): Lease | undefined {
    try {
      const lease = decodeLease(id, entry.data);
      this.#unreadable.delete(id);
      return lease;
    } catch (error) {
      if (this.#unreadable.get(id) === entry.version) return undefined;
      this.#unreadable.set(id, entry.version);
      const { code = "unknown" } = error as { code?: string };
      this.#context.counters.add("view.records_skipped", 1, { kind: "lease", code });
      this.#context.log.warn(
        { lease: id, code, error: messageOf(error) },
        "skipped a lease that cannot be read",
      );
      return undefined;
    }
  }

  /**
   * The lease is gone, so a request for it that still exists must be removed. A request is always written after its lease. The process
   * that ended the lease may not have seen the request, because two paths are seen at different moments, and the request may be
   * fulfilled by now.
   */
  async #forget(id: string): Promise<undefined> {
    const { ages, tree, view, log } = this.#context;
    this.#unreadable.delete(id);
    this.#sets.forget(id);
    ages.forget(leasePath(id));
    for (const request of [...view.requests.byRequestor.get(leaseRequestor(id))]) {
      // The tree has the last word: the view may show the request before its lease.
      if ((await tree.stat(leasePath(id))) !== undefined) return;
      await withdraw(this.#context, id, request);
      log.info({ lease: id, request }, "deleted a request whose lease is gone");
    }
    await this.#takeBackNodes(id);
  }

  /**
   * Takes back nodes whose lease is gone: somebody deleted its record or its request by hand, or an older release left the hold behind.
   * This includes `ready` nodes, because the contender of the lease is created before the node is set `in-use`.
   */
  async #takeBackNodes(lease: string): Promise<void> {
    const { tree, view } = this.#context;
    const requestor = leaseRequestor(lease);
    for (const id of [...view.nodes.byLock.get("locked")]) {
      if (view.nodes.byId.get(id)?.record.requestor !== requestor) continue;
      if ((await tree.stat(leasePath(lease))) !== undefined) return;
      await giveBack(this.#context, lease, id);
    }
  }

  /**
   * Holds all nodes of a fulfilled request, then grants the lease and deletes the request in one commit: from there on only the lease
   * names the nodes. Repeated after a crash, it finds the holds that were made.
   */
  async #grant(lease: Lease, entry: OwnEntry): Promise<void> {
    const { tree, log, journal } = this.#context;
    const request = this.#requestOf(lease);
    if (request === undefined) return;
    if (request.record.state === "failed") return failLease(this.#context, lease, entry, null, request.id);
    if (request.record.state !== "fulfilled") return;
    for (const id of request.record.nodes) {
      if (await holdNode(this.#context, lease, entry, request.id, id)) continue;
      log.warn(
        { lease: lease.id, request: request.id, node: id },
        "a node of a lease is gone before it was locked for it",
      );
      for (const held of request.record.nodes) await giveBack(this.#context, lease.id, held);
      return failLease(this.#context, lease, entry, null, request.id);
    }
    const granted: Lease = { ...lease, state: "granted", nodes: [...request.record.nodes] };
    await tree.commit([
      { op: "set", path: entry.path, data: encodeLease(granted, entry.data), version: entry.version },
      { op: "delete", path: paths.request(request.id) },
    ]);
    journal.write({
      event: "lease.granted",
      request: request.id,
      facts: { lease: lease.id, nodes: granted.nodes, owner: lease.owner, ...jobOf(lease) },
    });
  }

  /** By its requestor, not by the lease's own field: the client may have died before it wrote that. */
  #requestOf(lease: Lease): RequestEntry | undefined {
    const { requests } = this.#context.view;
    for (const id of requests.byRequestor.get(leaseRequestor(lease.id))) return requests.byId.get(id);
    return undefined;
  }

  /**
   * Ends a lease whose time is over. The lease is marked before its nodes are collected. A launcher that holds a node for the lease
   * checks the version of the lease in the same commit, so it either comes first, and its node is read here, or it fails.
   */
  async #expire(lease: Lease, entry: OwnEntry): Promise<undefined> {
    // Noted, because the launcher that returns the nodes may be another one, by whose clock some time is left.
    const released: Lease = { ...lease, state: "released", expired: true };
    const data = encodeLease(released, entry.data);
    const { path, version } = entry;
    const [{ stat }] = await this.#context.tree.commit([{ op: "set", path, data, version }] as const);
    return this.#end(released, { ...entry, data, version: stat.version });
  }

  /** Returns the nodes of a released lease, then forgets it. Its request goes too when it was never fulfilled. */
  async #end(lease: Lease, entry: OwnEntry): Promise<undefined> {
    const { tree, journal } = this.#context;
    const why = lease.expired || this.#left(lease) <= 0 ? "expired" : "released";
    const isGood = why === "released" && (lease.verdict === null || lease.verdict === "ok");
    const returned = isGood ? (lease.commit ? "well" : "back") : undefined;
    for (const id of nodesOfLease(lease)) await giveBack(this.#context, lease.id, id, returned);
    const requests = [...this.#context.view.requests.byRequestor.get(leaseRequestor(lease.id))];
    for (const request of requests) await withdraw(this.#context, lease.id, request);
    await orUndefined(tree.delete(entry.path, { version: entry.version }));
    journal.write({
      event: "lease.ended",
      request: lease.request ?? requests[0],
      facts: {
        lease: lease.id,
        nodes: nodesOfLease(lease),
        why,
        ...(lease.verdict === null ? {} : { verdict: lease.verdict }),
        ...(returned === "well" && { commit: true }),
        ...jobOf(lease),
      },
    });
    return undefined;
  }
}
