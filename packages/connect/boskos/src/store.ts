import { CallRefused, type Client } from "@nodeyard/client";
import { type Clock, defined } from "@nodeyard/runtime";
import { notFound } from "./errors.ts";
import { type LeaseRow, type Resource, type ResourceRecord, resourceOf, shown } from "./record.ts";

/** The state in which a resource is when nobody has it: its node is leased from the pool then. */
export const FREE = "free";
/** States after which nobody wants the node as it is: it is returned. In any other state it stays, without an owner. */
const RETURNED: ReadonlySet<string> = new Set(["dirty", "toBeDeleted", "tombstone"]);
/** After so long a list shows what was written. */
const SHOWN_MS = 60_000;
const LEASE_ID = /^[0-9a-f]{12}$/;

/** Resources as their leases have them. */
export class Store {
  readonly #pool: Client;
  readonly #clock: Clock;
  /** By lease: what was written last, until lists and reads show it, which is a moment later. */
  readonly #written = new Map<string, Resource>();

  constructor(pool: Client, clock: Clock) {
    this.#pool = pool;
    this.#clock = clock;
  }

  /** Those that wait or are held. */
  async all(): Promise<readonly Resource[]> {
    const found: Resource[] = [];
    const query = { "job.system": "boskos", state: "waiting,granted" };
    for await (const lease of this.#pool.list("list_leases", query)) {
      const resource = this.newest(lease);
      if (resource !== undefined) found.push(resource);
    }
    // Leases that ended by their time.
    const oldest = this.#clock.now() - SHOWN_MS;
    for (const [id, { record }] of this.#written) if (record.updated < oldest) this.#written.delete(id);
    return found;
  }

  async find(name: string): Promise<Resource | undefined> {
    const lease = LEASE_ID.test(name) ? await this.lease(name) : undefined;
    return lease && this.newest(lease);
  }

  /** Undefined: it has ended. */
  lease(id: string): Promise<LeaseRow | undefined> {
    return this.#pool.call("get_leases", { path: { id } }).catch(orMissing);
  }

  /**
   * Writes what has changed, which is a heartbeat of the lease, too. Rejects with BoskosRefusal where the lease has ended, and with an error of
   * `isOvertaken` where somebody else has written meanwhile.
   */
  async write({ lease, record }: Resource, change: Partial<ResourceRecord>): Promise<Resource> {
    const next = { ...record, ...change, updated: this.#clock.now() };
    const body = { data: JSON.stringify(next), ...defined({ data_was: lease.data ?? undefined }) };
    const given = { path: { id: lease.id }, body };
    const kept = await this.#pool.call("heartbeat_lease", given).catch(orMissing);
    if (kept === undefined) throw notFound(lease.id);
    const resource = { lease: kept, record: next };
    this.#written.set(lease.id, resource);
    return resource;
  }

  /** Gives the node back, or keeps it without an owner, as the state says. */
  async end(resource: Resource, dest: string): Promise<void> {
    if (dest !== FREE && !RETURNED.has(dest)) {
      await this.write(resource, { owner: "", state: dest });
      return;
    }
    this.#written.delete(resource.lease.id);
    const verdict = dest === FREE ? "ok" : "dirty";
    await this.#pool.call("release_lease", { path: { id: resource.lease.id }, body: { verdict } });
  }

  /** What the caller is answered. */
  async shown(resource: Resource): Promise<object> {
    const { items } = await this.#pool.call("list_lease_nodes", { path: { id: resource.lease.id } });
    return shown(resource, items[0]);
  }

  /** The resource of a lease that was read, with what was written since. */
  newest(lease: LeaseRow): Resource | undefined {
    const seen = resourceOf(lease);
    const written = this.#written.get(lease.id);
    if (seen === undefined || written === undefined) return seen;
    const { record } = written;
    if (record.updated > seen.record.updated)
      return { lease: { ...lease, data: written.lease.data }, record };
    this.#written.delete(lease.id);
    return seen;
  }
}

/** Another connector, or another call, has written to the lease since it was read. */
export function isOvertaken(error: unknown): boolean {
  return error instanceof CallRefused && error.code === "lease.data_changed";
}

/** The lease has ended, or there is none. */
function orMissing(error: unknown): undefined {
  const isMissing = error instanceof CallRefused && [404, 409].includes(error.status);
  if (isMissing && !isOvertaken(error)) return undefined;
  throw error;
}
