import { createHash } from "node:crypto";
import { CallRefused } from "@nodeyard/client";
import type { ConnectorParts } from "@nodeyard/connect";
import { defined, sleep } from "@nodeyard/runtime";
import { noType, notFound, notInState, notOwner } from "./errors.ts";
import { type Options, optionsOf, type TypeOptions } from "./options.ts";
import { type LeaseRow, type Resource, type ResourceRecord, resourceOf, withoutOwn } from "./record.ts";
import { FREE, isOvertaken, Store } from "./store.ts";

/** What an acquire asks for. */
export interface Wish {
  readonly type: string;
  readonly state: string;
  readonly dest: string;
  readonly owner: string;
  /** "": the caller keeps no place in the queue. */
  readonly request: string;
}

/** A lease that waits for callers without a request id, and when one of them asked last. */
interface Unclaimed {
  readonly key: string;
  readonly at: number;
}

/** `waits`: without a resource it may come to a later call for the same lease. */
interface Outcome {
  readonly resource?: Resource;
  readonly waits: boolean;
}

const OVER: Outcome = { waits: false };
/** A node that is ready is leased in less; each pause is twice the one before. */
const FIRST_LOOK_MS = 50;
const MOST_ATTEMPTS = 40;

/**
 * Resources of Boskos, each the node of a lease. All that must outlive the process is in the leases: a request id leads to its lease by the
 * key of idempotency, and what Boskos knows of a resource is the lease's `data`.
 */
export class Resources {
  readonly #parts: ConnectorParts;
  readonly #options: Options;
  readonly #store: Store;
  readonly #stop = new AbortController();
  /** Leases that no call waits for at the moment, by type and owner. What is forgotten with the process, the next one ends. */
  readonly #unclaimed = new Map<string, Unclaimed[]>();
  /** Labels that were there when they were looked for. */
  readonly #types = new Set<string>();

  constructor(parts: ConnectorParts, options: Options) {
    this.#parts = parts;
    this.#options = options;
    this.#store = new Store(parts.pool, parts.clock);
  }

  /** `isGone`: whether the caller has hung up, so that nothing is given to nobody. Rejects with BoskosRefusal. */
  async acquire(wish: Wish, isGone: () => boolean): Promise<object> {
    const { type: name, owner, request } = wish;
    const type = await this.#typeOf(name);
    if (wish.state !== FREE) return this.#store.shown(await this.#again(() => this.#takeKept(wish)));
    let outcome: Outcome;
    if (request === "") {
      // Two calls at a time must not get one lease, so each has its own; the next call of the owner goes on with one that waits.
      const place = JSON.stringify([name, owner]);
      const key = this.#unclaimed.get(place)?.shift()?.key ?? this.#parts.random.uuid();
      outcome = await this.#again(() => this.#ask(key, type, wish, isGone));
      const at = this.#parts.clock.now();
      if (outcome.waits) this.#unclaimed.set(place, [...(this.#unclaimed.get(place) ?? []), { key, at }]);
    } else {
      const key = createHash("sha256").update(JSON.stringify(["boskos", name, owner, request]));
      const digest = key.digest("hex");
      outcome = await this.#again(() => this.#ask(digest, type, wish, isGone));
    }
    if (outcome.resource === undefined) throw notFound(name);
    return this.#store.shown(outcome.resource);
  }

  /** All resources of these names, which must be in `state` and without an owner. Rejects with BoskosRefusal. */
  acquireByState(state: string, dest: string, owner: string, names: readonly string[]) {
    const taken: Resource[] = [];
    const wanted = new Set(names);
    return this.#again(async () => {
      const kept = (await this.#store.all()).filter((one) => isKept(one, state) && wanted.has(one.lease.id));
      // All or none: the real server keeps what it found, of which the caller does not learn.
      if (wanted.size > kept.length + taken.length) {
        for (const one of taken) await this.#store.write(one, { owner: "", state });
        throw notFound(state);
      }
      for (const one of kept) taken.push(await this.#store.write(one, { owner, state: dest }));
      return Promise.all(taken.map((one) => this.#store.shown(one)));
    });
  }

  /** Rejects with BoskosRefusal. */
  release(name: string, dest: string, owner: string): Promise<void> {
    return this.#again(async () => this.#store.end(await this.#held(name, owner), dest));
  }

  /** Rejects with BoskosRefusal. */
  update(name: string, owner: string, state: string, userdata: Readonly<Record<string, string>>) {
    return this.#again(async () => {
      const resource = await this.#held(name, owner);
      if (state !== resource.record.state) throw notInState(resource.record.state, state);
      // An empty value removes its key.
      const all = Object.entries({ ...resource.record.userdata, ...withoutOwn(userdata) });
      const kept = Object.fromEntries(all.filter(([, value]) => value !== ""));
      await this.#store.write(resource, { userdata: kept });
    });
  }

  /** Takes resources from owners that have not updated them for `ms`; returns the owners by name. */
  async reset(type: string, state: string, ms: number, dest: string): Promise<Record<string, string>> {
    const owners: Record<string, string> = {};
    const oldest = this.#parts.clock.now() - ms;
    for (const resource of await this.#store.all()) {
      const { lease, record } = resource;
      if (!record.held || record.owner === "" || record.updated > oldest) continue;
      if (record.type !== type || record.state !== state) continue;
      await this.#store.end(resource, dest);
      owners[lease.id] = record.owner;
    }
    return owners;
  }

  /** How many resources are in which state, and whose. Rejects with BoskosRefusal. */
  async metric(type: string): Promise<object> {
    const { label } = await this.#typeOf(type, notFound);
    const current: Record<string, number> = {};
    const owner: Record<string, number> = {};
    const count = (record: Pick<ResourceRecord, "state" | "owner">) => {
      current[record.state] = (current[record.state] ?? 0) + 1;
      owner[record.owner] = (owner[record.owner] ?? 0) + 1;
    };
    for await (const node of this.#parts.pool.list("list_nodes", { state: "ready", label }))
      if (node.allocated_to === null && !node.locked) count({ state: FREE, owner: "" });
    for (const { record } of await this.#store.all()) if (record.held && record.type === type) count(record);
    return { type, current, owner };
  }

  /** Ends leases that no caller has asked for in time, as when the caller was killed. */
  async sweep(): Promise<void> {
    const { clock, pool, log } = this.#parts;
    const { "request-ttl-seconds": ttl, "wait-seconds": wait } = this.#options;
    // A call that waits has noted when it began.
    const oldest = clock.now() - (ttl + wait) * 1_000;
    for (const [place, waiting] of this.#unclaimed) {
      const young = waiting.filter(({ at }) => at >= oldest);
      if (young.length > 0) this.#unclaimed.set(place, young);
      else this.#unclaimed.delete(place);
    }
    const isOld = ({ record }: Resource) => !record.held && record.updated < oldest;
    for (const { lease, record } of (await this.#store.all()).filter(isOld)) {
      // The list may be a moment old: somebody may have asked meanwhile.
      const now = await this.#store.find(lease.id);
      if (now === undefined || !isOld(now)) continue;
      await pool.call("release_lease", { path: { id: lease.id }, body: { why: "no caller asks for it" } });
      log.info(
        { lease: lease.id, owner: record.owner },
        "gave up a request that no caller asks for any more",
      );
    }
  }

  /** Calls that wait end at once. */
  close(): void {
    this.#stop.abort();
  }

  /** Once more where somebody has written meanwhile: what is read then may call for something else. */
  async #again<T>(work: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++)
      try {
        return await work();
      } catch (error) {
        if (!isOvertaken(error) || attempt === MOST_ATTEMPTS) throw error;
        // What another connector has written is shown a moment later.
        await sleep(this.#parts.clock, FIRST_LOOK_MS);
      }
  }

  /** Without a table of types each label is one, by its name. */
  async #typeOf(name: string, missing = noType): Promise<TypeOptions> {
    const { types } = this.#options;
    if (types !== undefined) return types[name] ?? Promise.reject(missing(name));
    if (!this.#types.has(name)) {
      await this.#parts.pool.call("list_labels", { query: { label: name } }).catch((error: unknown) => {
        throw error instanceof CallRefused && error.code === "api.unknown_value" ? missing(name) : error;
      });
      this.#types.add(name);
    }
    return optionsOf(name);
  }

  /** Makes the lease of a key, or goes on with it. */
  async #ask(key: string, type: TypeOptions, wish: Wish, isGone: () => boolean): Promise<Outcome> {
    const { pool, clock, log } = this.#parts;
    const { owner, dest: state, request } = wish;
    const record = { type: wish.type, owner, state, held: false, updated: clock.now(), userdata: {} };
    const seconds = { for_seconds: type["for-seconds"] };
    const body = {
      labels: [type.label],
      ...seconds,
      ...defined({ heartbeat_seconds: type["heartbeat-seconds"], priority: type.priority }),
      job: { system: "boskos", id: request || owner, name: owner, url: null },
      data: JSON.stringify(record),
    };
    const made = await pool.call("create_lease", { body }, { key });
    const known = resourceOf(made);
    // The answer to the same request was lost.
    if (known?.record.held && made.state === "granted")
      return known.record.owner === owner ? { resource: known, waits: false } : OVER;
    if (known !== undefined && known.record.updated < record.updated) await this.#store.write(known, {});
    const lease = made.state === "waiting" ? await this.#arrival(made.id) : made;
    if (lease === undefined) return { waits: true };
    const path = { id: lease.id };
    if (lease.state === "granted") {
      if (isGone()) return { waits: true };
      await pool.call("extend_lease", { path, body: seconds });
      const now = this.#store.newest(lease) ?? { lease, record };
      const { userdata } = record;
      const change = { owner, state, held: true, userdata };
      return { resource: await this.#store.write(now, change), waits: false };
    }
    // No pool can serve it, or not now: the next call asks anew.
    if (lease.state === "failed") {
      await pool.call("release_lease", { path, body: {} });
      log.warn(
        { lease: lease.id, request: lease.request, label: type.label },
        "every pool declined a request",
      );
    }
    return OVER;
  }

  /** The lease as it is when it waits no more; undefined: it still waits after the time for which a call waits. */
  async #arrival(id: string): Promise<LeaseRow | undefined> {
    const { clock } = this.#parts;
    const end = clock.monotonic() + this.#options["wait-seconds"] * 1_000;
    for (let pause = FIRST_LOOK_MS; clock.monotonic() < end && !this.#stop.signal.aborted; pause *= 2) {
      await sleep(clock, Math.min(pause, end - clock.monotonic()), this.#stop.signal).catch(() => {});
      const lease = await this.#store.lease(id);
      if (lease !== undefined && lease.state !== "waiting") return lease;
    }
    return undefined;
  }

  /** The resource that was released to this state for the longest time. */
  async #takeKept({ type, state, dest, owner }: Wish): Promise<Resource> {
    const kept = (await this.#store.all()).filter((one) => isKept(one, state) && one.record.type === type);
    const [oldest] = kept.sort((a, b) => a.record.updated - b.record.updated);
    if (oldest === undefined) throw notFound(type);
    return this.#store.write(oldest, { owner, state: dest });
  }

  /** Rejects with BoskosRefusal where it is not the owner's. */
  async #held(name: string, owner: string): Promise<Resource> {
    const found = await this.#store.find(name);
    if (!found?.record.held || found.lease.state !== "granted") throw notFound(name);
    if (found.record.owner !== owner) throw notOwner(owner, found.record.owner);
    return found;
  }
}

function isKept({ lease, record }: Resource, state: string): boolean {
  return record.held && lease.state === "granted" && record.owner === "" && record.state === state;
}
