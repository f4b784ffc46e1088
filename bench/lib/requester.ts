import { setTimeout as sleep } from "node:timers/promises";
import type { WatchEvent, ZooKeeper } from "@nodeyard/zookeeper";
import { inParallel } from "../floor.ts";
import { zuulRequest } from "./records.ts";

export const REQUESTS = "/nodepool/requests";
export const NODES = "/nodepool/nodes";
/** A request without events is read this often, in case its last event was missed. */
const LOOK_MS = 1_000;
const READS_IN_FLIGHT = 256;

export interface Fulfilled {
  readonly id: string;
  /** By the tree's own clock, in milliseconds since the epoch. */
  readonly createdAt: number;
  readonly fulfilledAt: number;
  readonly nodes: readonly string[];
}

/** Requests nodes as Zuul does, and reads from the tree when they were delivered. */
export class Requester {
  readonly #client: ZooKeeper;
  readonly #events = new Map<string, number>();
  /** Requests to read: those written twice, pending and fulfilled. Before that there is nothing to read. */
  readonly #due = new Set<string>();
  readonly #waiting = new Set<() => void>();
  #number = 0;

  constructor(client: ZooKeeper) {
    this.#client = client;
  }

  /** A requester that sees events of requests from now on. */
  static async open(client: ZooKeeper): Promise<Requester> {
    const requester = new Requester(client);
    await client.ensurePath(REQUESTS);
    await client.addWatch(REQUESTS, "persistent-recursive", (event) => requester.#seen(event));
    return requester;
  }

  /** Writes `count` requests of one node at once; returns their ids. */
  async submit(label: string, count: number): Promise<string[]> {
    const created = Array.from({ length: count }, () => {
      const data = zuulRequest(label, Date.now() / 1_000, ++this.#number);
      return this.#client.create(`${REQUESTS}/100-`, data, { sequential: true });
    });
    return (await Promise.all(created)).map(({ path }) => path.slice(REQUESTS.length + 1));
  }

  /** Resolves when all are fulfilled; rejects when one failed or `limitMs` have passed. */
  async fulfilled(ids: readonly string[], limitMs: number): Promise<Fulfilled[]> {
    const done: Fulfilled[] = [];
    const open = new Set(ids);
    const limit = performance.now() + limitMs;
    let lookAt = performance.now() + LOOK_MS;
    while (open.size > 0) {
      const now = performance.now();
      if (now > limit) throw new Error(`${open.size} of ${ids.length} requests open after ${limitMs} ms`);
      const due = now >= lookAt ? [...open] : this.#takeDue(open);
      if (now >= lookAt) lookAt = now + LOOK_MS;
      await inParallel(due, READS_IN_FLIGHT, async (id) => {
        const result = await this.#read(id);
        if (result === undefined) return;
        done.push(result);
        open.delete(id);
      });
      if (open.size > 0 && due.length === 0) await this.#nextEvent(50);
    }
    return done;
  }

  #takeDue(open: ReadonlySet<string>): string[] {
    const [few, many] = open.size < this.#due.size ? [open, this.#due] : [this.#due, open];
    const due = [...few].filter((id) => many.has(id));
    for (const id of due) this.#due.delete(id);
    return due;
  }

  async #read(id: string): Promise<Fulfilled | undefined> {
    const { data, stat } = await this.#client.get(`${REQUESTS}/${id}`);
    const record: { state: string; nodes?: string[] } = JSON.parse(data.toString());
    if (record.state === "failed") throw new Error(`request ${id} failed`);
    if (record.state !== "fulfilled") return undefined;
    return { id, createdAt: stat.ctime, fulfilledAt: stat.mtime, nodes: record.nodes ?? [] };
  }

  /**
   * Returns nodes unused: first every node is set to `used`, then the requests are deleted. In the other order the nodes would become free.
   */
  async giveBack(requests: readonly Fulfilled[]): Promise<void> {
    await inParallel(requests, READS_IN_FLIGHT, async ({ id, nodes }) => {
      this.#events.delete(id);
      for (const node of nodes) await setState(this.#client, node, "used");
      await this.#client.delete(`${REQUESTS}/${id}`);
    });
  }

  #seen(event: WatchEvent): void {
    if (event.type !== "data") return;
    const id = event.path.slice(REQUESTS.length + 1);
    const events = (this.#events.get(id) ?? 0) + 1;
    this.#events.set(id, events);
    if (events < 2) return;
    this.#due.add(id);
    for (const wake of this.#waiting) wake();
  }

  /** An event arrives before the reply that it overtook; a short wait after the reply costs the measurement nothing. */
  #nextEvent(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        setImmediate(resolve);
      };
      const timer = setTimeout(wake, ms);
      this.#waiting.add(wake);
    });
  }
}

/** Rewrites a node's state as Zuul does: the whole record, whatever its version. */
export async function setState(client: ZooKeeper, node: string, state: string): Promise<void> {
  const { data } = await client.get(`${NODES}/${node}`);
  const record = { ...JSON.parse(data.toString()), state, state_time: Date.now() / 1_000, id: node };
  await client.set(`${NODES}/${node}`, Buffer.from(JSON.stringify(record)));
}

/** Resolves when exactly `count` nodes are in the tree. */
export async function nodesLeft(client: ZooKeeper, count: number, limitMs: number): Promise<void> {
  const limit = performance.now() + limitMs;
  for (;;) {
    const left = (await client.exists(NODES))?.numChildren ?? 0;
    if (left === count) return;
    if (performance.now() > limit) throw new Error(`${left} nodes instead of ${count} after ${limitMs} ms`);
    await sleep(10);
  }
}
