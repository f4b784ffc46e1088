import type { Clock, Timer } from "@nodeyard/runtime";
import type { Op } from "../contract.ts";
import { type Applied, DataTree, type TreeEvent } from "../engine/index.ts";
import type { PortEvent } from "../remote/port.ts";

/** A change, in the order in which the leader applied it. */
export type Transaction =
  | { readonly kind: "write"; readonly ops: readonly Op[]; readonly session: bigint; readonly at: number }
  | { readonly kind: "open" }
  | { readonly kind: "end"; readonly session: bigint };

/** The znodes of one server, and the watches of the clients connected to it. */
export class Replica {
  readonly tree = new DataTree();
  readonly #watchers = new Set<(event: PortEvent) => void>();

  /** Applies a transaction. Its events are sent by `tell`. */
  apply(transaction: Transaction): Applied {
    switch (transaction.kind) {
      case "write":
        return this.tree.apply(transaction.ops, transaction.session, transaction.at);
      case "open":
        this.tree.tick();
        return { results: [], touched: [], events: [] };
      case "end":
        return { results: [], ...this.tree.endSession(transaction.session) };
    }
  }

  /** Calls `watcher` synchronously at every later change. Returns a function that unsubscribes. */
  onEvent(watcher: (event: PortEvent) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }

  /**
   * Sends events to the connected clients. Watches on whole subtrees report no change of children: the creation or deletion of the
   * child says it.
   */
  tell(events: readonly TreeEvent[]): void {
    for (const { type, path } of events) {
      if (type === "childrenChanged") continue;
      for (const tell of this.#watchers) tell({ type, path });
    }
  }

  /** Applies all outstanding transactions now. The leader has none. */
  catchUp(): void {}
}

/** A server that applies the leader's transactions later, in the same order. */
export class FollowerReplica extends Replica {
  readonly #clock: Clock;
  readonly #lagMs: () => number;
  /** Transactions that the leader applied and this server has not, in their order. Times do not decrease, so the first is due first. */
  readonly #due: { readonly at: number; readonly transaction: Transaction }[] = [];
  #timer: Timer | undefined;

  /** `lagMs` is called for each transaction. */
  constructor(clock: Clock, lagMs: () => number) {
    super();
    this.#clock = clock;
    this.#lagMs = lagMs;
  }

  /** Takes a transaction. One with a short lag still waits for those before it. */
  follow(transaction: Transaction): void {
    const at = Math.max(this.#due.at(-1)?.at ?? 0, this.#clock.monotonic() + this.#lagMs());
    this.#due.push({ at, transaction });
    if (this.#due.length === 1) this.#wait();
  }

  /** Called before an answer that must not be behind: to a write, a sync and the opening of a session. */
  override catchUp(): void {
    this.#upTo(Number.POSITIVE_INFINITY);
  }

  #wait(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    const [next] = this.#due;
    if (next === undefined) return;
    const now = this.#clock.monotonic();
    this.#timer = this.#clock.setTimer(next.at - now, () => this.#upTo(this.#clock.monotonic()), {
      background: true,
    });
  }

  #upTo(time: number): void {
    while (this.#due.length > 0 && this.#due[0]!.at <= time) {
      const applied = this.apply(this.#due.shift()!.transaction);
      // The trees were in the same state, so what the leader accepted cannot fail here.
      if (applied.error !== undefined) throw applied.error;
      this.tell(applied.events);
    }
    this.#wait();
  }
}
