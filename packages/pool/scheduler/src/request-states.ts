import type { RequestEntry } from "@nodeyard/view";
import type { PutBack } from "./pool-state.ts";
import type { Verdict } from "./types.ts";
import type { Waiting } from "./waits.ts";

/** What a handler of ours has of a request. */
interface Handling {
  /** Key of the pool; empty when it only declines the request or puts it back. */
  readonly pool: string;
  /** Launches that have no node record yet, by label: they count as used. */
  readonly reserved: { readonly label: string; readonly node: string }[];
  /** Idle nodes that are promised to it. */
  readonly claimed: readonly string[];
  /** Version of the request when the handler began. */
  readonly version: number | undefined;
}

/** All that the scheduler knows of one request. */
class RequestState {
  /** As the tree has it; undefined: it is gone, and its handler has not ended yet. */
  entry: RequestEntry | undefined;
  /** Set while a pool of this launcher can serve it: its place in queues and lines. */
  waiting: Waiting | undefined;
  /** Set and removed by `begin` and `end`. A request has one handler at most, and waits in no queue meanwhile. */
  handling: Handling | undefined;
  /** When it first yielded to another pool, steady milliseconds. */
  yieldedAt: number | undefined;
  /** When it first was the blocked head of a queue, steady milliseconds; only noted with shares. */
  headSince: number | undefined;
  /** Why it waits, where its place does not say it. */
  verdict: Verdict | undefined;
}

/** One entry for each request, and sets of those that are looked for by what they are at. */
export class RequestStates {
  readonly #byId = new Map<string, RequestState>();
  /** Requests that are `pending`; those without a handler in this launcher may have to be reset. */
  readonly pending = new Set<string>();
  /** Requests with a handler here; a subset of `#byId`, as the other sets are. */
  readonly handled = new Set<string>();
  /** Handled requests whose lock may not be ours yet, or whose launches are not all under way. */
  readonly starting = new Set<string>();
  /** Idle nodes that are promised to handled requests. */
  readonly claims = new Set<string>();
  /** Room is kept for these, as long as their timers "request" run. */
  readonly putBack = new Map<string, PutBack>();

  /** Takes a request as the tree has it now, undefined when it is gone. Returns it as it was. */
  see(id: string, after: RequestEntry | undefined): RequestEntry | undefined {
    const before = this.#byId.get(id)?.entry;
    // Also for a handled request: when it is put back and waits again, a sweep must not reset it.
    if (after?.record.state === "pending") this.pending.add(id);
    else this.pending.delete(id);
    if (before !== undefined || after !== undefined) this.at(id).entry = after;
    return before;
  }

  /** Undefined for a request that the tree does not have and no handler works on. */
  of(id: string): RequestState | undefined {
    return this.#byId.get(id);
  }

  /** The same, made when there is none. */
  at(id: string): RequestState {
    const known = this.#byId.get(id) ?? new RequestState();
    this.#byId.set(id, known);
    return known;
  }

  /** Nothing is kept of a request that is gone and that no handler works on. */
  prune(id: string): void {
    const known = this.#byId.get(id);
    if (known?.entry === undefined && known?.handling === undefined) this.#byId.delete(id);
  }

  /** The request as the tree has it. */
  entry(id: string): RequestEntry | undefined {
    return this.#byId.get(id)?.entry;
  }

  /** Those that are gone, and whose handlers have not ended yet, count as well. */
  get size(): number {
    return this.#byId.size;
  }

  /** Requests of the tree. */
  *entries(): IterableIterator<RequestEntry> {
    for (const { entry } of this.#byId.values()) if (entry !== undefined) yield entry;
  }

  /** Requests that wait, with their place in queues and lines. */
  *waiting(): IterableIterator<Waiting> {
    for (const { waiting } of this.#byId.values()) if (waiting !== undefined) yield waiting;
  }

  /**
   * A handler begins; the caller has removed the request from all queues. `starting`: it counts against `maxStarting` until `started`.
   */
  begin(id: string, handling: Omit<Handling, "version">, starting: boolean): void {
    const known = this.at(id);
    known.handling = { ...handling, version: known.entry?.version };
    this.handled.add(id);
    for (const node of handling.claimed) this.claims.add(node);
    if (starting) this.starting.add(id);
  }

  /** It has its lock, and all its launches are under way. Undefined when that was known. */
  started(id: string): Handling | undefined {
    return this.starting.delete(id) ? this.#byId.get(id)?.handling : undefined;
  }

  /** The handler has ended. A request that is gone is forgotten with it. */
  end(id: string): void {
    const known = this.at(id);
    for (const node of known.handling?.claimed ?? []) this.claims.delete(node);
    known.handling = undefined;
    this.handled.delete(id);
    this.starting.delete(id);
    this.prune(id);
  }
}
