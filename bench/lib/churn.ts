import { setTimeout as sleep } from "node:timers/promises";
import type { ZooKeeper } from "@nodeyard/zookeeper";
import { NODES, REQUESTS } from "./requester.ts";

const BATCHES_PER_SECOND = 20;

/**
 * Changes records as other programs do, so many times a second: an operator holds an unused node and offers it again, Zuul changes the
 * priority of a request, in turn. It is late rather than early, and `changes` says how many there were.
 */
export class Churn implements AsyncDisposable {
  changes = 0;
  readonly #client: ZooKeeper;
  readonly #stop = new AbortController();
  readonly #ended: Promise<void>;

  constructor(client: ZooKeeper, perSecond: number) {
    this.#client = client;
    this.#ended = this.#run(perSecond);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#ended;
  }

  async #run(perSecond: number): Promise<void> {
    const names = async (folder: string) =>
      (await this.#client.children(folder)).children.map((name) => `${folder}/${name}`);
    const [nodes, requests] = [await names(NODES), await names(REQUESTS)];
    const batch = perSecond / BATCHES_PER_SECOND;
    let due = performance.now();
    while (!this.#stop.signal.aborted) {
      const at = (all: readonly string[]) => all[Math.floor(this.changes / 2) % all.length]!;
      const made: Promise<void>[] = [];
      for (let one = 0; one < batch; one++, this.changes++)
        made.push(this.changes % 2 === 0 ? this.#hold(at(nodes)) : this.#prioritise(at(requests)));
      await Promise.all(made);
      due += 1_000 / BATCHES_PER_SECOND;
      await sleep(Math.max(0, due - performance.now()));
    }
  }

  #hold(path: string): Promise<void> {
    return this.#change(path, ({ state }) => ({
      state: state === "ready" ? "hold" : "ready",
      state_time: Date.now() / 1_000,
    }));
  }

  #prioritise(path: string): Promise<void> {
    return this.#change(path, () => ({ relative_priority: this.changes % 10 }));
  }

  async #change(
    path: string,
    change: (record: Readonly<Record<string, unknown>>) => Readonly<Record<string, unknown>>,
  ): Promise<void> {
    const record = JSON.parse((await this.#client.get(path)).data.toString());
    await this.#client.set(path, Buffer.from(JSON.stringify({ ...record, ...change(record) })));
  }
}
