import { add, type Resources, subtract, type Tag, tagKey } from "@nodeyard/driver";

/** What a machine becomes after BUILD. */
export type Fate = "active" | "never" | "error";

/** A machine of the cloud. Times are wall time in milliseconds. */
export interface FakeServer {
  readonly id: string;
  readonly name: string;
  /** The tag in its metadata; null for machines of other programs. */
  readonly tag: Tag | null;
  readonly az: string;
  /** Its flavor, where the label has several. */
  readonly type?: string | undefined;
  readonly resources: Resources;
  readonly networks: readonly string[];
  readonly createdAt: number;
  /** Time from the creation until it is up, milliseconds. */
  readonly bootMs: number;
  readonly fate: Fate;
  /** Lag of find and list for this machine, milliseconds. */
  readonly lagMs: number;
}

/** A line of the journal: a change of the cloud, in order. */
export type CloudEvent =
  | {
      readonly op: "create";
      readonly at: number;
      readonly server: FakeServer;
      /** Created although its tag may have a machine already. */
      readonly again?: boolean;
    }
  | { readonly op: "delete"; readonly at: number; readonly id: string; readonly keepsRecord: boolean }
  /** It is put aside, or goes on: `upAt` is when it is up again. */
  | { readonly op: "suspend"; readonly id: string }
  | { readonly op: "wake"; readonly id: string; readonly upAt: number };

/** A machine with its deletion. `keepsRecord`: it stays listed as DELETED for good. */
interface Entry {
  server: FakeServer;
  deletedAt: number | undefined;
  keepsRecord: boolean;
  isSuspended: boolean;
  /** When it is up, or will be; wall milliseconds. */
  upAt: number;
}

/** States of a fake machine: BUILD becomes ACTIVE or ERROR; ACTIVE becomes SUSPENDED, and that BUILD; each may become DELETED. */
export type Status = "BUILD" | "ACTIVE" | "SUSPENDED" | "ERROR" | "DELETED";

/**
 * The machines of a cloud, computed from its events, so that every process that reads the same journal sees the same machines. A tag has at
 * most one live machine: of two creates the first in the journal counts, unless the cloud repeats creates.
 */
export class Servers {
  /** All machines by id, deleted ones for as long as a list may show them. */
  readonly #entries = new Map<string, Entry>();
  /** Live machines of each tag, the oldest first. The oldest one is the tag's machine. */
  readonly #byTag = new Map<string, Set<Entry>>();
  /** Machines that count for quota and capacity; with the sums below, so that a create need not add up all machines. */
  readonly #live = new Set<Entry>();
  readonly #zones = new Map<string, number>();
  #used: Resources = {};

  /** Applies an event. A second create of a tag, and a second delete, have no effect. */
  apply(event: CloudEvent): void {
    if (event.op === "create") this.#create(event.server, event.again === true);
    else if (event.op === "delete") this.#delete(event.id, event.at, event.keepsRecord);
    else {
      const entry = this.#entries.get(event.id);
      if (entry === undefined || entry.isSuspended === (event.op === "suspend")) return;
      entry.isSuspended = event.op === "suspend";
      if (event.op === "wake") entry.upAt = event.upAt;
    }
  }

  /** Strongly consistent, as a read by id is. Undefined when the machine never existed or is gone. */
  get(id: string): FakeServer | undefined {
    const entry = this.#entries.get(id);
    return entry === undefined || (entry.deletedAt !== undefined && !entry.keepsRecord)
      ? undefined
      : entry.server;
  }

  /** The live machine of a tag. */
  ofTag(tag: Tag): FakeServer | undefined {
    return this.#byTag.get(tagKey(tag))?.values().next().value?.server;
  }

  /** Resources of all live machines together. */
  get used(): Resources {
    return this.#used;
  }

  /** Number of live machines in a zone. */
  inZone(az: string): number {
    return this.#zones.get(az) ?? 0;
  }

  live(): readonly FakeServer[] {
    return Array.from(this.#live, (entry) => entry.server);
  }

  /** The list at `now`. Each machine appears and disappears with its lag. */
  listed(now: number): readonly FakeServer[] {
    const shown: FakeServer[] = [];
    for (const { server, deletedAt, keepsRecord } of this.#entries.values()) {
      if (now < server.createdAt + server.lagMs) continue;
      if (deletedAt !== undefined && !keepsRecord && now >= deletedAt + server.lagMs) continue;
      shown.push(server);
    }
    return shown;
  }

  status(server: FakeServer, now: number): Status {
    const entry = this.#entries.get(server.id);
    if (entry?.deletedAt !== undefined) return "DELETED";
    if (entry?.isSuspended) return "SUSPENDED";
    if (server.fate === "never" || now < (entry?.upAt ?? server.createdAt + server.bootMs)) return "BUILD";
    return server.fate === "error" ? "ERROR" : "ACTIVE";
  }

  /** Drops deleted machines that no list can still show, so that memory does not grow in a long run. */
  forget(now: number): void {
    for (const [id, { server, deletedAt, keepsRecord }] of this.#entries) {
      if (deletedAt !== undefined && !keepsRecord && now >= deletedAt + server.lagMs)
        this.#entries.delete(id);
    }
  }

  #create(server: FakeServer, again: boolean): void {
    const key = server.tag === null ? undefined : tagKey(server.tag);
    if (this.#entries.has(server.id) || (!again && key !== undefined && this.#byTag.has(key))) return;
    const upAt = server.createdAt + server.bootMs;
    const entry: Entry = { server, deletedAt: undefined, keepsRecord: false, isSuspended: false, upAt };
    this.#entries.set(server.id, entry);
    this.#live.add(entry);
    this.#used = add(this.#used, server.resources);
    this.#zones.set(server.az, this.inZone(server.az) + 1);
    if (key !== undefined) this.#byTag.set(key, (this.#byTag.get(key) ?? new Set()).add(entry));
  }

  #delete(id: string, at: number, keepsRecord: boolean): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.deletedAt !== undefined) return;
    entry.deletedAt = at;
    entry.keepsRecord = keepsRecord;
    this.#live.delete(entry);
    this.#used = subtract(this.#used, entry.server.resources);
    this.#zones.set(entry.server.az, this.inZone(entry.server.az) - 1);
    if (entry.server.tag !== null) this.#untag(entry, tagKey(entry.server.tag));
    if (!keepsRecord && entry.server.lagMs === 0) this.#entries.delete(id);
  }

  /** Somebody removed the metadata of a machine. */
  loseTag(id: string): void {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.server.tag === null) return;
    this.#untag(entry, tagKey(entry.server.tag));
    entry.server = { ...entry.server, tag: null };
  }

  #untag(entry: Entry, key: string): void {
    const servers = this.#byTag.get(key);
    servers?.delete(entry);
    if (servers?.size === 0) this.#byTag.delete(key);
  }
}
