import { CallRefused } from "@nodeyard/client";
import type { ConnectorParts } from "@nodeyard/connect";
import { defined, errorClass, sleep } from "@nodeyard/runtime";
import { beyond, type Guest, type GuestRequest, guestOf, shown } from "./guest.ts";
import { type Options, ruleFor } from "./options.ts";

/** A caller asks for what there is not. */
export class GuestRefused extends errorClass("artemis.refused") {}

/** There is no guest of this name. */
export class NoGuest extends errorClass("artemis.no_guest") {}

/** The only log that a node can have: its console, as its cloud has it. */
const CONSOLE = "console:dump";
const GUEST_NAME = /^[0-9a-f-]{36}$/;
/** How long a new lease is looked for in lists, which show it a moment after it was made. */
const SEEN_MS = 5_000;
const LOOK_MS = 50;

/** Guests of Artemis, each the node of a lease. Everything is in the lease. */
export class Guests {
  readonly #parts: ConnectorParts;
  readonly #options: Options;

  constructor(parts: ConnectorParts, options: Options) {
    this.#parts = parts;
    this.#options = options;
  }

  /** Rejects with GuestRefused. */
  async create(asked: GuestRequest): Promise<object> {
    const { pool, clock, random, log } = this.#parts;
    const { hw, os, pool: place } = asked.environment;
    const wanted = {
      arch: hw.arch,
      compose: os.compose,
      keyname: asked.keyname,
      ...defined({ pool: place ?? undefined }),
    };
    const problem = beyond(asked);
    if (problem !== undefined) throw new GuestRefused(problem);
    const rule = ruleFor(this.#options.rules, { ...wanted, constraints: hw.constraints });
    if (rule === undefined) {
      const words = Object.entries({
        ...wanted,
        ...defined({ hardware: hw.constraints && JSON.stringify(hw.constraints) }),
      });
      throw new GuestRefused(
        `no rule of this connector fits ${words.map((pair) => pair.join(" ")).join(", ")}`,
      );
    }
    const name = random.uuid();
    const body = {
      labels: [rule.label],
      for_seconds: rule["for-seconds"],
      ...defined({ priority: rule.priority }),
      job: { system: "artemis", id: name, name: this.#options.username ?? null, url: null },
      data: JSON.stringify(asked),
    };
    const lease = await pool.call("create_lease", { body }, { key: name });
    log.info({ guest: name, lease: lease.id, label: rule.label, ...wanted }, "a guest was requested");
    // Callers look for it at once, and take a 404 for the end.
    const end = clock.monotonic() + SEEN_MS;
    while ((await this.#find(name)) === undefined && clock.monotonic() < end) await sleep(clock, LOOK_MS);
    return shown({ lease, asked }, undefined);
  }

  async list(): Promise<readonly object[]> {
    const all: Promise<object>[] = [];
    for await (const lease of this.#parts.pool.list("list_leases", { "job.system": "artemis" })) {
      const guest = guestOf(lease);
      if (guest !== undefined) all.push(this.#shown(guest));
    }
    return Promise.all(all);
  }

  /** Rejects with NoGuest. */
  async get(name: string): Promise<object> {
    return this.#shown(await this.#known(name));
  }

  /** Rejects with NoGuest. */
  async delete(name: string): Promise<void> {
    const { lease } = await this.#known(name);
    await this.#parts.pool.call("release_lease", { path: { id: lease.id }, body: {} });
    this.#parts.log.info({ guest: name, lease: lease.id }, "a guest was deleted");
  }

  /** Rejects with NoGuest. */
  async log(name: string, log: string, contenttype: string): Promise<object> {
    const { pool, clock } = this.#parts;
    const { lease } = await this.#known(name);
    const none = { contenttype, url: null, blobs: [], updated: null, expires: null };
    if (log !== CONSOLE || contenttype !== "blob") return { ...none, state: "unsupported" };
    const [node] = lease.nodes;
    if (node === undefined) return { ...none, state: "pending" };
    const { lines, problem } = await pool.call("get_node_console", { path: { id: node } });
    if (problem !== null) return { ...none, state: "unsupported" };
    const ctime = new Date(clock.now()).toISOString();
    return { ...none, state: "in-progress", updated: ctime, blobs: [{ ctime, content: lines.join("\n") }] };
  }

  async #known(name: string): Promise<Guest> {
    const guest = GUEST_NAME.test(name) ? await this.#find(name) : undefined;
    if (guest === undefined) throw new NoGuest("No such entity");
    return guest;
  }

  async #find(name: string): Promise<Guest | undefined> {
    const query = { "job.system": "artemis", "job.id": name };
    for await (const lease of this.#parts.pool.list("list_leases", query)) return guestOf(lease);
    return undefined;
  }

  async #shown(guest: Guest): Promise<object> {
    if (guest.lease.state !== "granted") return shown(guest, undefined);
    const { items } = await this.#parts.pool
      .call("list_lease_nodes", { path: { id: guest.lease.id } })
      .catch((error: unknown) => {
        // It was returned in between.
        if (error instanceof CallRefused && error.status === 404) throw new NoGuest("No such entity");
        throw error;
      });
    return shown(guest, items[0]);
  }
}
