import type { Connector, ConnectorParts } from "@nodeyard/connect";
import { messageOf, type Timer } from "@nodeyard/runtime";
import { NoNode, type Tree, tryLock } from "@nodeyard/tree";
import { NodeLeases } from "./leases.ts";
import type { Options } from "./options.ts";
import { KNOWN_MODEL_APIS, type StoredNode } from "./records.ts";
import { nextStep } from "./step.ts";
import { NODE_LOCKS, ZuulView } from "./view.ts";
import { NodeWork } from "./work.ts";

/** A node is looked at again after a failure, and all of them in any case. */
const AGAIN_MS = 5_000;
const RESYNC_MS = 60_000;
/** Node's timers end at 25 days, and a label may keep its nodes for longer. */
const LONGEST_MS = 3_600_000;
/** Steps of one look at a node: each of them changes what is stored. */
const MOST_STEPS = 5;

/**
 * Serves the nodes that Zuul's launchers have made of one connection: leases each and writes into its record what a launcher would. It keeps
 * nothing: what is to be done follows from Zuul's records and from the leases, so it may be killed between any two writes, and several may run.
 */
export class ZuulConnector implements Connector {
  readonly #tree: Tree;
  readonly #options: Options;
  readonly #parts: ConnectorParts;
  readonly #view: ZuulView;
  readonly #leases: NodeLeases;
  readonly #work: NodeWork;
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #again = new Set<string>();
  readonly #timers = new Map<string, Timer>();
  readonly #warned = new Set<string>();
  #resync: Timer | undefined;
  #isClosed = false;

  constructor(tree: Tree, options: Options, parts: ConnectorParts) {
    this.#tree = tree;
    this.#options = options;
    this.#parts = parts;
    const changed = (node: string | undefined) => this.#wake(node);
    this.#leases = new NodeLeases(parts, options, changed);
    this.#work = new NodeWork(tree, this.#leases, parts);
    this.#view = new ZuulView(tree, options.connection, parts.log, changed);
    this.#schedule();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#resync?.cancel();
    for (const timer of this.#timers.values()) timer.cancel();
    await this.#leases.close();
    await Promise.all(this.#underWay.values());
    await this.#view.close();
    await this.#tree.close();
  }

  #schedule(): void {
    this.#resync = this.#parts.clock.setTimer(RESYNC_MS, () => {
      this.#wake(undefined);
      this.#schedule();
    });
  }

  #wake(node: string | undefined): void {
    if (this.#isClosed || !this.#mayAct()) return;
    const all = node === undefined ? new Set([...this.#view.nodes.keys(), ...this.#leases.nodes()]) : [node];
    for (const one of all) this.#start(one);
  }

  /** One look at a node at a time; a change during one is followed by another. */
  #start(node: string): void {
    if (this.#underWay.has(node)) {
      this.#again.add(node);
      return;
    }
    this.#timers.get(node)?.cancel();
    this.#timers.delete(node);
    const work = this.#look(node)
      .catch((error: unknown) => {
        if (this.#isClosed) return;
        this.#count("look", "failed");
        const facts = { zuul_node: node, why: messageOf(error) };
        this.#parts.log.warn(facts, "a node of Zuul waits for the next attempt");
        this.#later(node, AGAIN_MS);
      })
      .finally(() => {
        this.#underWay.delete(node);
        if (this.#again.delete(node) && !this.#isClosed) this.#start(node);
      });
    this.#underWay.set(node, work);
  }

  #later(node: string, ms: number): void {
    this.#timers.get(node)?.cancel();
    const timer = this.#parts.clock.setTimer(Math.min(ms, LONGEST_MS), () => this.#wake(node));
    this.#timers.set(node, timer);
  }

  async #look(node: string): Promise<void> {
    const { clock, random, name } = this.#parts;
    const known = this.#view.ours(node);
    if (known === undefined) {
      if (this.#view.nodes.get(node)?.stored === undefined) await this.#work.returnLost(node);
      return;
    }
    const { stored, assignment, lifecycle } = known;
    this.#reportUnknown(stored!);
    if (stored!.node.state === "snapshot") await this.#work.declineSnapshot(node);
    // Whoever holds the lock changes the record, and its release is a change that wakes.
    if (this.#view.isLocked(node)) return;
    const request = assignment && this.#view.requests.get(assignment.request_id);
    const now = clock.now() / 1_000;
    const lease = this.#leases.get(node);
    const step = nextStep({ node: stored!.node, assignment, request, lifecycle, lease, now });
    if (step.do === "wait") {
      if (step.until !== undefined) this.#later(node, Math.max(0, (step.until - now) * 1_000));
      return;
    }
    if (step.do === "lease") {
      const { label } = stored!.node;
      const { labels, "keep-seconds": seconds } = this.#options;
      const refusal = await this.#work.lease(node, labels[label] ?? label, seconds, request?.value);
      this.#count("lease", refusal === undefined ? "ok" : "refused");
      if (refusal === undefined) return;
      // The pool does not have the label, or this client may not ask for it.
      this.#once("error", `${label}: ${refusal}`, { label });
      this.#later(node, RESYNC_MS);
      return;
    }
    const options = { random, identifier: name };
    const lock = await tryLock(this.#tree, `${NODE_LOCKS}/${node}`, options).catch((error: unknown) => {
      if (error instanceof NoNode) return undefined;
      throw error;
    });
    if (lock === undefined) {
      // A lock that was held for a moment may never be reported.
      this.#later(node, AGAIN_MS);
      return;
    }
    let isGone = false;
    try {
      for (let taken = 0; taken < MOST_STEPS; taken++) {
        const found = await this.#work.find(node);
        if (found === undefined || found.step.do === "wait" || found.step.do === "lease") break;
        const after = await this.#work.do(node, found, lock);
        this.#count(found.step.do, "ok");
        isGone = after === "gone";
        if (after !== "more") break;
      }
    } finally {
      if (!isGone) await lock.release();
    }
    // Its own writes are in the view already: what follows them, without the lock.
    this.#again.add(node);
  }

  /** Whether all is known, and no launcher of Zuul serves the connection, too. */
  #mayAct(): boolean {
    const { connection } = this.#options;
    for (const [path, { hostname, model_api, connection_filter: filter }] of this.#view.components) {
      const kind = path.split("/")[3];
      if (!KNOWN_MODEL_APIS.has(model_api)) {
        const text = `Zuul's ${kind} on ${hostname} has model API ${model_api}, with which this release was not tested`;
        this.#once("warn", text, { model_api });
      }
      if (kind !== "launcher") continue;
      if (filter == null || filter.length === 0 || filter.includes(connection)) {
        const text = `zuul-launcher on ${hostname} serves the connection ${connection}, too: give it a connection_filter without that`;
        this.#once("error", text, { hostname });
        return false;
      }
    }
    return this.#view.complete && this.#leases.complete;
  }

  /** Steps of nodes are the calls of this connector. */
  #count(call: string, result: "ok" | "failed" | "refused"): void {
    const { counters, name: connector } = this.#parts;
    counters.add("connect.calls", 1, { connector, call, result });
  }

  #reportUnknown({ unknown, node: { uuid } }: StoredNode): void {
    for (const key of unknown) {
      const text = `Zuul's nodes have a field ${key}, which this release does not know; it is kept`;
      this.#once("warn", text, { zuul_node: uuid });
    }
  }

  #once(level: "warn" | "error", text: string, facts: object): void {
    if (this.#warned.has(text) || this.#warned.size > 1_000) return;
    this.#warned.add(text);
    this.#parts.log[level](facts, text);
  }
}
