import type { RequestEntry } from "../view/index.ts";
import type { PutBack } from "./state.ts";
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
}

/** All that the scheduler knows of one request. */
export interface RequestState {
  /** As the tree has it; undefined: it is gone, and its handler has not ended yet. */
  entry: RequestEntry | undefined;
  /** Set while a pool of this launcher can serve it: its place in queues and lines. */
  waiting: Waiting | undefined;
  /** Set and removed by `begin` and `end`. A request has one handler at most, and waits in no queue meanwhile. */
  handling: Handling | undefined;
  /** When it first yielded to another pool, steady milliseconds. */
  yieldedAt: number | undefined;
  /** Why it waits, where its place does not say it. */
  verdict: Verdict | undefined;
}

/** One entry for each request, and those of them that are looked for by what they are at. */
export class RequestTable {
  readonly #byId = new Map<string, RequestState>();
  readonly #pending = new Set<string>();
  readonly #handled = new Set<string>();
  readonly #starting = new Set<string>();
  readonly #claims = new Set<string>();
  readonly #putBack = new Map<string, PutBack>();

  /** Takes a request as the tree has it now, undefined when it is gone. Returns it as it was. */
  see(id: string, after: RequestEntry | undefined): RequestEntry | undefined {
    const before = this.#byId.get(id)?.entry;
    // Also for a handled request: when it is put back and waits again, a sweep must not reset it.
    if (after?.record.state === "pending") this.#pending.add(id);
    else this.#pending.delete(id);
    if (after !== undefined) this.at(id).entry = after;
    else if (before !== undefined) this.at(id).entry = undefined;
    return before;
  }

  of(id: string): RequestState | undefined {
    return this.#byId.get(id);
  }

  /** The same, made when there is none. */
  at(id: string): RequestState {
    const known = this.#byId.get(id);
    if (known !== undefined) return known;
    const made: RequestState = {
      entry: undefined,
      waiting: undefined,
      handling: undefined,
      yieldedAt: undefined,
      verdict: undefined,
    };
    this.#byId.set(id, made);
    return made;
  }

  /** Nothing is kept of a request that is gone and that no handler works on. */
  prune(id: string): void {
    const known = this.#byId.get(id);
    if (known?.entry === undefined && known?.handling === undefined) this.#byId.delete(id);
  }

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

  /** Requests that are `pending`; those without a handler in this launcher may have to be reset. */
  pending(): IterableIterator<string> {
    return this.#pending.values();
  }

  isPending(id: string): boolean {
    return this.#pending.has(id);
  }

  /** Room is kept for it, as long as its timer "request" runs. */
  putBack(id: string, place: PutBack): void {
    this.#putBack.set(id, place);
  }

  /** None is kept any more. Returns its place; undefined when it had none. */
  leavePlace(id: string): PutBack | undefined {
    const place = this.#putBack.get(id);
    this.#putBack.delete(id);
    return place;
  }

  places(): IterableIterator<PutBack> {
    return this.#putBack.values();
  }

  /** `starting`: its lock may not be ours yet, or its launches are not all under way. */
  begin(id: string, handling: Handling, starting: boolean): void {
    this.at(id).handling = handling;
    this.#handled.add(id);
    for (const node of handling.claimed) this.#claims.add(node);
    if (starting) this.#starting.add(id);
  }

  /** It has its lock, and all its launches are under way. Undefined when that was known. */
  started(id: string): Handling | undefined {
    return this.#starting.delete(id) ? this.#byId.get(id)?.handling : undefined;
  }

  end(id: string): void {
    const known = this.#byId.get(id);
    for (const node of known?.handling?.claimed ?? []) this.#claims.delete(node);
    if (known !== undefined) known.handling = undefined;
    this.#handled.delete(id);
    this.#starting.delete(id);
    this.prune(id);
  }

  isHandled(id: string): boolean {
    return this.#handled.has(id);
  }

  handled(): IterableIterator<string> {
    return this.#handled.values();
  }

  /** Whether an idle node is promised to a request. */
  claims(node: string): boolean {
    return this.#claims.has(node);
  }

  claimed(): IterableIterator<string> {
    return this.#claims.values();
  }

  /** What those that are starting have. */
  *starting(): IterableIterator<Handling> {
    for (const id of this.#starting) yield this.#byId.get(id)!.handling!;
  }

  get startingCount(): number {
    return this.#starting.size;
  }
}
