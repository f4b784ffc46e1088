import { mayGo, type NodeState, type RequestState } from "@nodeyard/model";
import type { AppliedWrite } from "@nodeyard/tree";

/** A rule that the log of a run breaks, with the write that breaks it. */
export class Broken extends Error {
  constructor(rule: string, write: AppliedWrite | undefined, what: string) {
    const at =
      write === undefined
        ? ""
        : ` (zxid ${write.zxid}, ${write.client}, t=${write.at}: ${write.ops.map((op) => `${op.op} ${op.path}`).join(", ")})`;
    super(`${rule}: ${what}${at}`);
    this.name = "Broken";
  }
}

/** Holder of a durable contender: any launcher may act for a lease, and what it writes checks the record's version. */
const LEASE = "a lease";

interface Znode {
  readonly data: Record<string, unknown>;
  readonly version: number;
}

const NODE = /^\/nodepool\/nodes\/(\d{10})$/;
const NODE_LOCK = /^\/nodepool\/nodes\/(\d{10})\/lock\/(.+)$/;
const REQUEST = /^\/nodepool\/requests\/([^/]+)$/;
const POOL = /^\/nodepool\/components\/pool\/./;
const REQUEST_LOCK = /^\/nodepool\/requests-lock\/([^/]+)\/(.+)$/;

/** Replays every applied write of a run and holds it against the rules of the design, sections 5 and 6. */
export class LogCheck {
  readonly nodes = new Map<string, Znode>();
  readonly requests = new Map<string, Znode>();
  /** Contender name to client, by lock. */
  readonly #nodeLocks = new Map<string, Map<string, string>>();
  readonly #requestLocks = new Map<string, Map<string, string>>();
  /** Sessions with a pool in the registry. */
  /** Sessions in which a pool was registered. One that leaves in order may still end what it had begun. */
  readonly #registered = new Set<bigint>();
  readonly #limits: ReadonlyMap<string, number>;
  /** Requests that were fulfilled, with the nodes that they got and that nobody has returned. */
  readonly #given = new Map<string, string>();

  /** `limits`: nodes per `<provider>/<pool>` at most. */
  constructor(limits: ReadonlyMap<string, number>) {
    this.#limits = limits;
  }

  take(write: AppliedWrite): void {
    const requests = new Set(
      write.ops.flatMap((op) => (op.op === "check" ? [] : (REQUEST.exec(op.path)?.[1] ?? []))),
    );
    if (requests.size > 1 && write.sessionEnd !== true)
      throw new Broken("a commit holds one request at most", write, [...requests].join(", "));
    const heldBefore = this.#locksOf(write.client);
    for (const [index, op] of write.ops.entries()) {
      const result = write.results[index];
      const path = op.op === "create" && result?.op === "create" ? result.path : op.path;
      if (op.op === "check") continue;
      if (op.op === "delete") this.#delete(path);
      else
        this.#put(
          write,
          path,
          op.op === "create" ? "create" : "set",
          op.op === "create" && op.sequential === true,
          Buffer.from(op.data ?? "").toString(),
          heldBefore,
        );
    }
    this.#checkLimits(write);
  }

  #locksOf(client: string): ReadonlySet<string> {
    const held = new Set<string>();
    for (const [locks, kind] of [
      [this.#nodeLocks, "node"],
      [this.#requestLocks, "request"],
    ] as const) {
      for (const [id, contenders] of locks)
        if (contenders.get(head(contenders) ?? "") === client) held.add(`${kind} ${id}`);
    }
    return held;
  }

  #delete(path: string): void {
    const [node, lock, request, requestLock] = [
      NODE.exec(path),
      NODE_LOCK.exec(path),
      REQUEST.exec(path),
      REQUEST_LOCK.exec(path),
    ];
    if (node) {
      this.nodes.delete(node[1]!);
      this.#given.delete(node[1]!);
    } else if (lock) this.#nodeLocks.get(lock[1]!)?.delete(lock[2]!);
    else if (request) this.requests.delete(request[1]!);
    else if (requestLock) this.#requestLocks.get(requestLock[1]!)?.delete(requestLock[2]!);
  }

  #put(
    write: AppliedWrite,
    path: string,
    how: "create" | "set",
    sequential: boolean,
    text: string,
    held: ReadonlySet<string>,
  ): void {
    const lock = NODE_LOCK.exec(path);
    if (lock) return contend(this.#nodeLocks, lock[1]!, lock[2]!, isLease(text) ? LEASE : write.client);
    if (POOL.test(path)) this.#registered.add(write.session);
    const requestLock = REQUEST_LOCK.exec(path);
    if (requestLock) return contend(this.#requestLocks, requestLock[1]!, requestLock[2]!, write.client);
    const node = NODE.exec(path);
    const request = REQUEST.exec(path);
    if (!node && !request) return;
    if (how === "create" && !sequential)
      throw new Broken("ids come only from sequential creates", write, path);
    const data = JSON.parse(text) as Record<string, unknown>;
    if (node) this.#node(write, node[1]!, data, held);
    else if (request) this.#request(write, request[1]!, data, held);
  }

  #node(write: AppliedWrite, id: string, data: Record<string, unknown>, held: ReadonlySet<string>): void {
    const before = this.nodes.get(id);
    const state = data.state as NodeState;
    if (before !== undefined) {
      const from = before.data.state as NodeState;
      if (from !== state && !mayGo("node", from, state))
        throw new Broken("nodes go only where the table says", write, `${id}: ${from} -> ${state}`);
      const own = this.#nodeLocks.get(id);
      const holder = own?.get(head(own) ?? "");
      const locked = held.has(`node ${id}`) || holder === write.client || holder === LEASE;
      const freed =
        before.data.allocated_to !== null &&
        data.allocated_to === null &&
        from === "ready" &&
        state === "ready";
      if (!locked && !freed)
        throw new Broken("a node is written only under its lock", write, `${id}: ${from} -> ${state}`);
    }
    this.nodes.set(id, { data, version: (before?.version ?? -1) + 1 });
    if (before === undefined && data.slot !== null && data.slot !== undefined)
      this.#checkSlot(write, id, data);
  }

  #checkSlot(write: AppliedWrite, id: string, { hostname, slot }: Record<string, unknown>): void {
    for (const [other, { data }] of this.nodes) {
      if (other === id || data.hostname !== hostname || data.slot !== slot) continue;
      if (data.state === "deleted" || data.state === "deleting") continue;
      throw new Broken(
        "a slot has one record",
        write,
        `${hostname}#${slot}: ${other} (${data.state}) and ${id}`,
      );
    }
  }

  #request(write: AppliedWrite, id: string, data: Record<string, unknown>, held: ReadonlySet<string>): void {
    const before = this.requests.get(id);
    const state = data.state as RequestState;
    if (before !== undefined) {
      const own = this.#requestLocks.get(id);
      if (!held.has(`request ${id}`) && own?.get(head(own) ?? "") !== write.client) {
        throw new Broken(
          "a request is written only under its lock",
          write,
          `${id}: ${before.data.state} -> ${state}`,
        );
      }
      if (before.data.state === "fulfilled" || before.data.state === "failed")
        throw new Broken("an ended request is not written again", write, id);
    }
    this.requests.set(id, { data, version: (before?.version ?? -1) + 1 });
    if (state === "pending" && before?.data.state === "requested" && write.client.startsWith("launcher-")) {
      if (!this.#registered.has(write.session))
        throw new Broken("a pool is registered before it accepts", write, id);
    }
    if (state === "fulfilled") this.#fulfilled(write, id, data);
  }

  #fulfilled(write: AppliedWrite, id: string, data: Record<string, unknown>): void {
    const wanted = data.node_types as string[];
    const nodes = data.nodes as string[];
    if (nodes.length !== wanted.length)
      throw new Broken("a nodeset is delivered whole", write, `${id}: ${nodes.length} of ${wanted.length}`);
    const pools = new Set<string>();
    for (const [index, nodeId] of nodes.entries()) {
      const node = this.nodes.get(nodeId)?.data;
      if (node?.state !== "ready" || node.allocated_to !== id) {
        throw new Broken(
          "a request gets ready nodes of its own",
          write,
          `${id}: ${nodeId} is ${JSON.stringify(node)}`,
        );
      }
      if (!(node.type as string[]).includes(wanted[index]!))
        throw new Broken("nodes stand in the order of node_types", write, `${id}: ${nodeId}`);
      const contenders = this.#nodeLocks.get(nodeId);
      // Another launcher may be looking whether the lock is free; our own must be gone.
      const own = [...(contenders ?? [])].find(([, client]) => client === write.client);
      if (own !== undefined)
        throw new Broken(
          "nodes are unlocked before fulfilled shows",
          write,
          `${id}: ${nodeId} has ${own[0]}`,
        );
      const other = this.#given.get(nodeId);
      if (other !== undefined && this.requests.has(other))
        throw new Broken("a node is leased to one request at most", write, `${nodeId}: ${other} and ${id}`);
      this.#given.set(nodeId, id);
      pools.add(`${node.provider}/${node.pool}`);
    }
    if (pools.size > 1) throw new Broken("a nodeset comes from one pool", write, [...pools].join(", "));
  }

  #checkLimits(write: AppliedWrite): void {
    if (!write.ops.some((op) => op.op === "create" && op.path.startsWith("/nodepool/nodes/"))) return;
    const counts = new Map<string, number>();
    for (const { data } of this.nodes.values()) {
      const key = `${data.provider}/${data.pool}`;
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [key, limit] of this.#limits) {
      if ((counts.get(key) ?? 0) > limit)
        throw new Broken("limits are never exceeded", write, `${key}: ${counts.get(key)} of ${limit}`);
    }
  }
}

function isLease(identifier: string): boolean {
  return identifier.startsWith("Nodeyard:lease:");
}

function contend(locks: Map<string, Map<string, string>>, id: string, name: string, client: string): void {
  const contenders = locks.get(id) ?? new Map<string, string>();
  locks.set(id, contenders.set(name, client));
}

function head(contenders: ReadonlyMap<string, string>): string | undefined {
  return [...contenders.keys()].sort((a, b) => (a.slice(-10) < b.slice(-10) ? -1 : 1))[0];
}
