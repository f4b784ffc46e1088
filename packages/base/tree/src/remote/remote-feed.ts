import type { Clock, Random } from "@nodeyard/runtime";
import { Follower } from "@nodeyard/zookeeper";
import type { Feed, FeedOptions, Op, OpResult } from "../contract.ts";
import { NotAllowed, TreeClosed, type TreeError } from "../errors.ts";
import type { OwnWrites } from "./own-writes.ts";
import type { Port, PortEvent } from "./port.ts";

const NOTHING = new Uint8Array(0);

/**
 * The ZooKeeper client's tree cache over any connection, extended by this process's own writes: their state is taken from their replies,
 * without a read (docs/contract/write-order.md, "Own writes"). To avoid contradicting states, events on a path are kept back (parked)
 * while a write of this process is in flight on that path.
 */
export class RemoteFeed extends Follower implements Feed {
  readonly #own: OwnWrites;
  /** Paths with parked events. The value is the number of the last write that began before the first event. */
  readonly #parked = new Map<string, number>();

  constructor(
    port: Port,
    own: OwnWrites,
    root: string,
    feed: FeedOptions,
    options: {
      readonly clock: Clock;
      readonly random: Random;
      readonly resyncSpreadMs: number;
      readonly onEnd: () => void;
    },
  ) {
    super(port, root, feed, {
      ...options,
      closed: () => new TreeClosed(`the feed of ${root}`),
      isForbidden: (error) => error instanceof NotAllowed,
    });
    this.#own = own;
  }

  /** A write of this process was answered: with results, or with an error after which the state of its paths must be read. */
  ownWrite(ops: readonly Op[], results: readonly OpResult[] | undefined, error: TreeError | undefined): void {
    if (this.ended) return;
    for (let index = 0; index < ops.length; index++) {
      const op = ops[index] as Op;
      if (op.op === "check") continue;
      const result = results?.[index];
      const path = result?.op === "create" ? result.path : op.path;
      if (!this.covers(path)) continue;
      if (result !== undefined) {
        // Parked events came before the reply on the connection, so the reply shows a newer state.
        this.#parked.delete(path);
        this.#apply(path, op, result);
      } else if (error?.outcome === "unknown" && !(op.op === "create" && op.sequential)) {
        this.dirty(path);
      }
    }
    // An event waits for writes of its own path, or for a sequential create, whose path is known only now.
    const isSequential = ops.some((op) => op.op === "create" && op.sequential === true);
    for (const path of isSequential ? this.#parked.keys() : ops.map((op) => op.path)) {
      const write = this.#parked.get(path);
      if (write === undefined || this.#own.inFlight(path, true, write)) continue;
      this.#parked.delete(path);
      this.dirty(path);
    }
  }

  /** A later event on the path does not extend the wait of the first one. When the wait ends, the newest state is read. */
  protected override parks({ type, path }: PortEvent): boolean {
    if (!this.#own.inFlight(path, type === "created")) return false;
    if (!this.#parked.has(path)) this.#parked.set(path, this.#own.last);
    return true;
  }

  protected override onGap(): void {
    this.#parked.clear();
  }

  #apply(path: string, op: Op, result: OpResult): void {
    if (result.op === "delete") this.gone(path);
    else if (result.op !== "check" && op.op !== "delete" && op.op !== "check")
      this.put(path, op.data ?? NOTHING, result.stat);
  }
}
