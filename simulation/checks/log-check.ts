import { mayGo, type NodeState, type RequestState } from "@nodeyard/model";
import type { AppliedWrite, Op } from "@nodeyard/tree";
import { Broken } from "./broken.ts";
import { checkFulfilled, checkSlot } from "./delivery.ts";
import { Images } from "./images.ts";
import { checkLimits, type Limits } from "./limits.ts";
import { DURABLE, isUser, Locks } from "./locks.ts";
import { Registry } from "./registry.ts";
import { Slots } from "./slots.ts";

export interface Znode {
  readonly data: Record<string, unknown>;
  readonly version: number;
}

/** What the checks must know of the configuration. */
export interface Setting extends Limits {
  /** The provider whose nodes are slots. */
  readonly slicer?: string;
  /** The pool whose nodesets are of one zone each. */
  readonly zoned?: string;
}

export type Moved = (kind: "node" | "request", id: string, from: string | null, to: string | null) => void;

const NODE = /^\/nodepool\/nodes\/(\d{10})$/;
const NODE_LOCK = /^\/nodepool\/nodes\/(\d{10})\/lock\/(.+)$/;
const REQUEST = /^\/nodepool\/requests\/([^/]+)$/;
const POOL = /^\/nodepool\/components\/pool\/./;
const REQUEST_LOCK = /^\/nodepool\/requests-lock\/([^/]+)\/(.+)$/;

/** Replays every applied write of a run and holds it against the rules of the design, sections 5 and 6. */
export class LogCheck {
  readonly nodes = new Map<string, Znode>();
  readonly requests = new Map<string, Znode>();
  readonly nodeLocks = new Locks();
  /** Nodes of requests that were fulfilled, until somebody returns them, with the request. */
  readonly given = new Map<string, string>();
  /** When the write that is looked at was made. */
  now = 0;
  readonly #requestLocks = new Locks();
  readonly #registry = new Registry();
  readonly #images = new Images();
  readonly #slots: Slots;
  readonly #setting: Setting;
  readonly #moved: Moved;

  /** `moved` is told every change of state. */
  constructor(setting: Setting, moved: Moved = () => {}) {
    this.#setting = setting;
    this.#slots = new Slots(setting.slicer);
    this.#moved = moved;
  }

  /** The pool whose nodesets are of one zone each. */
  get zoned(): string | undefined {
    return this.#setting.zoned;
  }

  /** `at`: when it was written, by a clock that never jumps; milliseconds. */
  take(write: AppliedWrite, at = write.at): void {
    this.now = at;
    const requests = new Set(
      write.ops.flatMap((op) => (op.op === "check" ? [] : (REQUEST.exec(op.path)?.[1] ?? []))),
    );
    if (requests.size > 1 && write.sessionEnd !== true)
      throw new Broken("a commit holds one request at most", write, [...requests].join(", "));
    const held = {
      nodes: this.nodeLocks.heldBy(write.client),
      requests: this.#requestLocks.heldBy(write.client),
    };
    const left = new Set<string>();
    for (const [index, op] of write.ops.entries()) {
      if (op.op === "check") continue;
      const result = write.results[index];
      const path = result?.op === "create" ? result.path : op.path;
      if (op.op === "delete") this.#delete(path, left);
      else this.#put(write, path, op, held);
    }
    this.#images.take(write, at);
    this.#slots.take(write, this.nodes, {
      now: at,
      holder: (node) => this.nodeLocks.holder(node),
      left,
    });
    if (
      write.ops.some(
        (op) => op.op !== "check" && op.op !== "delete" && op.path.startsWith("/nodepool/nodes/"),
      )
    )
      checkLimits(this.nodes, this.#setting, write);
  }

  /** `left` is told of nodes whose last user went. */
  #delete(path: string, left: Set<string>): void {
    const [node, lock, request, requestLock] = [
      NODE.exec(path),
      NODE_LOCK.exec(path),
      REQUEST.exec(path),
      REQUEST_LOCK.exec(path),
    ];
    if (node) {
      this.#moved("node", node[1]!, stateOf(this.nodes.get(node[1]!)), null);
      this.nodes.delete(node[1]!);
      this.given.delete(node[1]!);
    } else if (request) {
      this.#moved("request", request[1]!, stateOf(this.requests.get(request[1]!)), null);
      this.requests.delete(request[1]!);
    } else if (lock) {
      const client = this.nodeLocks.remove(lock[1]!, lock[2]!);
      const others = this.nodeLocks.line(lock[1]!);
      if (client !== undefined && isUser(client) && !others.some((other) => isUser(other.client)))
        left.add(lock[1]!);
    } else if (requestLock) this.#requestLocks.remove(requestLock[1]!, requestLock[2]!);
    else if (POOL.test(path)) this.#registry.remove(path, this.now);
  }

  #put(
    write: AppliedWrite,
    path: string,
    op: Extract<Op, { op: "create" | "set" }>,
    held: { readonly nodes: ReadonlySet<string>; readonly requests: ReadonlySet<string> },
  ): void {
    const text = Buffer.from(op.data ?? "").toString();
    const lock = NODE_LOCK.exec(path);
    if (lock) {
      const durable = text.startsWith("Nodeyard:lease:") || text.startsWith("NodePool:metastatic:");
      const client = durable ? DURABLE : write.client;
      return this.nodeLocks.add(lock[1]!, lock[2]!, client, this.now);
    }
    const requestLock = REQUEST_LOCK.exec(path);
    if (requestLock) return this.#requestLocks.add(requestLock[1]!, requestLock[2]!, write.client, this.now);
    if (POOL.test(path)) {
      const { supported_labels } = JSON.parse(text) as { supported_labels: string[] };
      return this.#registry.put(path, write.session, supported_labels);
    }
    const [node, request] = [NODE.exec(path), REQUEST.exec(path)];
    if (!node && !request) return;
    if (op.op === "create" && op.sequential !== true)
      throw new Broken("ids come only from sequential creates", write, path);
    const data = JSON.parse(text) as Record<string, unknown>;
    if (node) this.#node(write, node[1]!, data, op, held.nodes.has(node[1]!));
    else if (request) this.#request(write, request[1]!, data, held.requests.has(request[1]!));
  }

  #node(write: AppliedWrite, id: string, data: Record<string, unknown>, op: Op, held: boolean): void {
    const before = this.nodes.get(id);
    const [from, to] = [stateOf(before), data.state as NodeState];
    if (before !== undefined) {
      if (from !== to && !mayGo("node", from as NodeState, to))
        throw new Broken("nodes go only where the table says", write, `${id}: ${from} -> ${to}`);
      const holder = this.nodeLocks.holder(id);
      // Any launcher may act for a lease or a metastatic provider, but not over what another wrote.
      const forDurable = holder === DURABLE && op.op === "set" && op.version !== undefined;
      if (!held && holder !== write.client && !forDurable && !this.#isRetired(write, before.data, data))
        throw new Broken("a node is written only under its lock", write, `${id}: ${from} -> ${to}`);
    }
    if (from !== to) this.#moved("node", id, from, to);
    if (data.image_id !== before?.data.image_id) this.#images.checkBoots(data.image_id, id, write, this.now);
    this.nodes.set(id, { data, version: (before?.version ?? -1) + 1 });
    if (before === undefined) checkSlot(this, id, write);
  }

  /** A min-ready request that is fulfilled frees its nodes as it goes, in one commit that checks their versions. */
  #isRetired(write: AppliedWrite, before: Record<string, unknown>, after: Record<string, unknown>): boolean {
    const request = String(before.allocated_to);
    return (
      request.startsWith("900-") &&
      after.allocated_to === null &&
      before.state === "ready" &&
      after.state === "ready" &&
      this.requests.get(request)?.data.state === "fulfilled" &&
      write.ops.some((op) => op.op === "delete" && op.path.endsWith(`/${request}`))
    );
  }

  #request(write: AppliedWrite, id: string, data: Record<string, unknown>, held: boolean): void {
    const before = this.requests.get(id);
    const [from, to] = [stateOf(before), data.state as RequestState];
    if (before !== undefined) {
      if (!held && this.#requestLocks.holder(id) !== write.client)
        throw new Broken("a request is written only under its lock", write, `${id}: ${from} -> ${to}`);
      if (from === "fulfilled" || from === "failed")
        throw new Broken("an ended request is not written again", write, id);
      if (from !== to && !mayGo("request", from as RequestState, to))
        throw new Broken("requests go only where the table says", write, `${id}: ${from} -> ${to}`);
    }
    if (from !== to) this.#moved("request", id, from, to);
    this.requests.set(id, { data, version: (before?.version ?? -1) + 1 });
    if (to === "pending" && from === "requested" && write.client.startsWith("launcher-")) {
      if (!this.#registry.serves(write.session, data.node_types as string[], this.now))
        throw new Broken("a pool is registered before it accepts", write, id);
    }
    if (to === "fulfilled") checkFulfilled(this, id, data, write);
  }
}

function stateOf(znode: Znode | undefined): string | null {
  return (znode?.data.state as string | undefined) ?? null;
}
