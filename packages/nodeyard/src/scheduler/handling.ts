/** What a handler of ours has of a request. */
interface Handling {
  /** Key of the pool; empty when it only declines the request or puts it back. */
  readonly pool: string;
  /** Launches that have no node record yet, by label: they count as used. */
  readonly reserved: { readonly label: string; readonly node: string }[];
  /** Idle nodes that are promised to it. */
  readonly claimed: readonly string[];
}

/** Requests that handlers of ours work on, one each: none of them waits in a queue, where another would begin with it. */
export class Handlings {
  readonly #byRequest = new Map<string, Handling>();
  readonly #claims = new Set<string>();
  readonly #starting = new Set<string>();

  /** `starting`: its lock may not be ours yet, or its launches are not all under way. */
  begin(request: string, handling: Handling, starting: boolean): void {
    this.#byRequest.set(request, handling);
    for (const node of handling.claimed) this.#claims.add(node);
    if (starting) this.#starting.add(request);
  }

  /** It has its lock, and all its launches are under way. Undefined when that was known. */
  started(request: string): Handling | undefined {
    return this.#starting.delete(request) ? this.#byRequest.get(request) : undefined;
  }

  end(request: string): void {
    for (const node of this.#byRequest.get(request)?.claimed ?? []) this.#claims.delete(node);
    this.#byRequest.delete(request);
    this.#starting.delete(request);
  }

  clear(): void {
    this.#byRequest.clear();
    this.#claims.clear();
    this.#starting.clear();
  }

  has(request: string): boolean {
    return this.#byRequest.has(request);
  }

  of(request: string): Handling | undefined {
    return this.#byRequest.get(request);
  }

  get size(): number {
    return this.#byRequest.size;
  }

  /** Whether an idle node is promised to a request. */
  claims(node: string): boolean {
    return this.#claims.has(node);
  }

  claimed(): IterableIterator<string> {
    return this.#claims.values();
  }

  /** Those that are starting. */
  *starting(): IterableIterator<Handling> {
    for (const request of this.#starting) yield this.#byRequest.get(request)!;
  }

  get startingCount(): number {
    return this.#starting.size;
  }

  requests(): IterableIterator<string> {
    return this.#byRequest.keys();
  }
}
