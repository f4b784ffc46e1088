import type { Resources } from "@nodeyard/driver";
import type { Hosts } from "./hosts.ts";
import type { Inventory } from "./inventory.ts";
import type { PoolQueue } from "./pool-queue.ts";
import type { ShareQueue } from "./share-queue.ts";
import type { LocalPool } from "./types.ts";
import type { Waiting } from "./waits.ts";

/** What capacity is counted in: the pool's limits, the provider's quota, launches at once. */
export type Scope = "pool" | "provider" | "launching";

/** The head of a queue that waits for capacity. */
export interface Blocked {
  readonly id: string;
  readonly waiting: Waiting;
  /** The amounts that its launches need. */
  readonly need: Resources;
  readonly launches: number;
  /** The limits that leave too little room for it. */
  readonly scopes: ReadonlySet<Scope>;
  /** How many machines have to be deleted before it fits; 0: deleting machines does not help. */
  readonly missing: number;
}

/** What the scheduler knows of a pool of this launcher. */
export interface PoolState {
  policy: LocalPool;
  /** Requests this pool could serve and would look at now, in order. */
  readonly queue: PoolQueue;
  /** Requests that joined the queue behind a blocked head and have not been looked at yet. */
  readonly fresh: Set<Waiting>;
  /** Requests that came back into the queue because a node of these labels became idle. If they do not use it, the next in line may. */
  readonly woken: Map<Waiting, readonly string[]>;
  /** The head of the queue, while it waits for capacity; requests behind it may only take what does not delay it. */
  blocked: Blocked | undefined;
  paused: boolean;
  /** Idle hosts of a pool without launches, and the requests that wait for them. */
  readonly inventory: Inventory<Waiting>;
  /**
   * With shares: of requests that want the same hosts one is in `inventory`, or about to be; the others wait here until they are next. By
   * `hostTurn`.
   */
  readonly turns: Map<string, { next: Waiting; readonly others: ShareQueue }>;
  /** All hosts of a pool without launches. */
  readonly hosts: Hosts<Waiting>;
}

/** A request that its pool tries again after a pause; until then the pool reserves room for it. */
export type PutBack = { readonly policy: LocalPool; readonly blocked: Blocked };
