import { abortable, type Clock, deadline } from "@nodeyard/runtime";
import { DriverError, LostMetadata } from "./errors.ts";
import type { ListWatch } from "./limits/list-watch.ts";
import { isOlder, type Metadata, sameNode, type Tag, tagKey, tagOf } from "./tags.ts";

/** Nodes whose calls were all made by this process. For these a slightly older list is complete. */
const MOST_KNOWN = 10_000;

/** How the machines of a cloud's nodes are listed and read. */
export interface NodeMachinesOptions<T> {
  readonly clock: Clock;
  readonly watch: Pick<ListWatch<T>, "all">;
  /** The metadata of a machine, which hold the tag of its node. */
  readonly metadataOf: (machine: T) => Metadata;
  /** A machine that will not run again: another one with the same tag comes before it. Default: there are none. */
  readonly hasEnded?: (machine: T) => boolean;
  /**
   * Whether a machine was made for a node by what nobody can change, such as the token of the call. It counts more than metadata, which
   * people remove and change. Default: nothing says so.
   */
  readonly isProven?: (machine: T, tag: Tag) => boolean;
  /** Reads one machine, because a listing may not show a new one yet. Undefined: it is gone. */
  readonly read: (id: string, signal: AbortSignal) => Promise<T | undefined>;
  /**
   * Milliseconds that a create goes on after its caller gave up, with its wait at the rate limit. Without the answer it would be unknown
   * whether a machine was made.
   */
  readonly createMs: number;
  /** Ends creates that go on. */
  readonly closed: AbortSignal;
}

/** The machines of nodes in a cloud whose machines carry metadata: made once per node, found by id or by tag. */
export class NodeMachines<T> {
  readonly #options: NodeMachinesOptions<T>;
  readonly #creating = new Map<string, Promise<unknown>>();
  /** The machine that this process made for a tag. Null: it only looked for one. */
  readonly #known = new Map<string, string | null>();

  constructor(options: NodeMachinesOptions<T>) {
    this.#options = options;
  }

  /**
   * The tag's machine in any state: by `stored`, the id in the node's record, if that machine has the tag, otherwise by the tag. `isGone`:
   * whether an id needs no read of its own. Rejects when the machine of the stored id exists, and nothing says whose it is any more.
   */
  async existing(
    tag: Tag,
    stored: string | undefined,
    signal: AbortSignal,
    isGone: (id: string) => boolean = () => false,
  ): Promise<T | undefined> {
    const { watch, read } = this.#options;
    const key = tagKey(tag);
    // A create whose caller gave up still makes its machine, which can be found only after the call has ended.
    await abortable(this.#creating.get(key)?.catch(() => {}) ?? Promise.resolve(), signal);
    const before = this.#known.get(key);
    const known = stored ?? before ?? undefined;
    this.#remember(tag, before ?? null);
    const found = this.#pick(await watch.all(signal, false), tag, known);
    // Without a stored id and without earlier calls for the tag there can be no newer machine, so a recent list is enough.
    if (found !== undefined || (known === undefined && before === undefined)) return found;
    const fresh = this.#pick(await watch.all(signal, true), tag, known);
    if (fresh !== undefined || known === undefined || isGone(known)) return fresh;
    const single = await read(known, signal);
    if (single === undefined) return undefined;
    const own = this.#pick(new Map([[known, single]]), tag, known);
    if (own === undefined && stored === known && this.#isLost(single))
      throw new LostMetadata(known, tag.nodeId);
    return own;
  }

  /** The tag's machine in a listing that begins after this call, or by the stored id, unless that is another node's. */
  async find(tag: Tag, signal: AbortSignal, stored?: string): Promise<T | undefined> {
    const { watch, read } = this.#options;
    const found = this.#pick(await watch.all(signal, true), tag, stored);
    if (found !== undefined || stored === undefined) return found;
    const single = await read(stored, signal);
    if (single === undefined || this.#isLost(single)) return single;
    return this.#pick(new Map([[stored, single]]), tag, stored);
  }

  /** Whether a machine that may be used says nothing of its node. */
  #isLost(machine: T): boolean {
    const { metadataOf, hasEnded = () => false } = this.#options;
    return tagOf(metadataOf(machine)) === null && !hasEnded(machine);
  }

  /**
   * Makes a machine by `make`, and resolves to its id. The call goes on when the caller gives up, because the cloud would make the machine
   * anyway; the next `existing` waits for its end.
   */
  create(tag: Tag, make: (signal: AbortSignal) => Promise<string>, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const { clock, createMs, closed } = this.#options;
    this.#remember(tag, this.#known.get(tagKey(tag)) ?? null);
    // Not "timeout": the machine, and so its image, has not been heard of at all.
    const late = () => new DriverError("transient", `node ${tag.nodeId}: no answer within ${createMs} ms`);
    const limit = deadline(clock, createMs, late, closed);
    const creating = make(limit.signal).then((id) => {
      this.#remember(tag, id);
      return id;
    });
    const key = tagKey(tag);
    const done = () => {
      limit.cancel();
      if (this.#creating.get(key) === creating) this.#creating.delete(key);
    };
    this.#creating.set(key, creating);
    creating.then(done, done);
    return abortable(creating, signal);
  }

  /** To be called when the node is deleted. Node ids are not reused, except in another tree by another process. */
  forget(tag: Tag): void {
    this.#known.delete(tagKey(tag));
  }

  #remember(tag: Tag, id: string | null): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(tagKey(tag), id);
  }

  #pick(listed: ReadonlyMap<string, T>, tag: Tag, id: string | undefined): T | undefined {
    const { metadataOf, hasEnded = () => false, isProven = () => false } = this.#options;
    const isOwn = (machine: T) => sameNode(tagOf(metadataOf(machine)), tag);
    const named = id === undefined ? undefined : listed.get(id);
    if (named !== undefined && (isOwn(named) || isProven(named, tag) || isOlder(metadataOf(named), tag)))
      return named;
    let ended: T | undefined;
    for (const machine of listed.values()) {
      if (!isOwn(machine)) continue;
      if (!hasEnded(machine)) return machine;
      ended ??= machine;
    }
    return ended;
  }
}
