import { abortable, type Clock, deadline, messageOf, sleep } from "@nodeyard/runtime";
import type { Log } from "./contract.ts";
import { DriverError, LostMetadata } from "./errors.ts";
import { ListWatch, type ListWatchOptions, type Wait } from "./limits/list-watch.ts";
import {
  type ExternalId,
  isOlder,
  type Metadata,
  namesOther,
  sameNode,
  type Tag,
  tagKey,
  tagOf,
} from "./tags.ts";

/** Nodes whose calls were all made by this process. For these a slightly older list is complete. */
const MOST_KNOWN = 10_000;
/** A machine that still runs this long after its deletion was requested has not heard of it, milliseconds. */
const UNHEARD_MS = 10_000;
/** Default of `createMs`. */
const CREATE_MS = 300_000;
/** Pause between two looks for a machine that is there and that no list shows yet, milliseconds. */
const LOOK_MS = 2_000;

/** A call that makes a machine, and gives its id. Repeated after a lost answer it makes no second one; undefined: lists will show the one. */
export type MakeCall = (signal: AbortSignal) => Promise<string | undefined>;

/** How the machines of a provider are listed for it alone. */
export interface OwnList<T>
  extends Pick<ListWatchOptions<T>, "list" | "changedAt" | "settledMs">,
    Partial<Pick<ListWatchOptions<T>, "isGone">> {
  /** Where a listing that failed is reported, and for which provider. */
  readonly log: Log;
  readonly provider: string;
}

/** How the machines of a cloud's nodes are listed, read, judged and deleted. */
export interface NodeMachinesOptions<T> {
  readonly clock: Clock;
  /** The listing that providers of an account share, or one for this provider. */
  readonly watch: Pick<ListWatch<T>, "all" | "whole" | "wait"> | OwnList<T>;
  /** What a machine is called in steps and messages: "server". Default: "instance". */
  readonly what?: string;
  readonly idOf: (machine: T) => string;
  /** The form in which records keep the ids of a machine. Default: `idOf`. */
  readonly externalIdOf?: (machine: T) => ExternalId;
  /** The machine's id in an external id of this or an older version; undefined for an unknown form. */
  readonly idIn: (externalId: ExternalId | null) => string | undefined;
  /** The metadata of a machine, which hold the tag of its node. */
  readonly metadataOf: (machine: T) => Metadata;
  readonly isUp: (machine: T) => boolean;
  /** Whether a machine that is being made will not come up any more. It is deleted before another one is made for its tag. Default: `hasEnded`. */
  readonly hasFailed?: (machine: T) => boolean;
  /** Why it has failed. `place` begins the message. */
  readonly failure: (machine: T, place: string, signal: AbortSignal) => DriverError | Promise<DriverError>;
  /** Requests a deletion. It has begun when this resolves. A machine that is gone is no error. */
  readonly delete: (id: string, signal: AbortSignal) => Promise<unknown>;
  /** Whether a deletion has begun, or has ended, of a machine that is still listed. */
  readonly isLeaving: (machine: T) => boolean;
  /** Waits for the end of a deletion, in place of `NodeMachines.gone`, where a cloud needs more care. */
  readonly gone?: (
    id: string,
    place: string,
    signal: AbortSignal,
    seen: T | undefined,
    watch: Pick<ListWatch<T>, "wait">,
  ) => Promise<void>;
  /** Whether an id needs no read of its own, as this process deleted its machine. Default: none. */
  readonly isDeleted?: (id: string) => boolean;
  /** A machine that will not run again: another one with the same tag comes before it. Default: there are none. */
  readonly hasEnded?: (machine: T) => boolean;
  /**
   * Whether a machine was made for a node by what nobody can change, such as the token of the call. It counts more than metadata, which
   * people remove and change. Default: nothing says so.
   */
  readonly isProven?: (machine: T, tag: Tag) => boolean;
  /** Reads one machine, because a listing may not show a new one yet. Undefined: it is gone. */
  readonly read: (id: string, signal: AbortSignal) => Promise<T | undefined>;
  /** Whether a machine being made is there, although no listing shows it in time. Rejects with why it was not made. Default: it is not. */
  readonly isUnlisted?: (id: string, place: string, signal: AbortSignal) => Promise<boolean>;
  /**
   * Milliseconds that a create goes on after its caller gave up, with its wait at the rate limit. Without the answer it would be unknown
   * whether a machine was made. Default: five minutes.
   */
  readonly createMs?: number;
  /** Ends creates that go on. */
  readonly closed: AbortSignal;
}

/** The same without what `cloudDriver` knows of a provider. */
export type MachineTable<T> = Omit<NodeMachinesOptions<T>, "clock" | "closed" | "watch"> & {
  readonly watch: Pick<ListWatch<T>, "all" | "whole" | "wait"> | Omit<OwnList<T>, "log" | "provider">;
};

/** A wait for a machine. */
type Reach<T> = readonly [
  kind: Wait,
  id: string,
  place: string,
  isThere: (machine: T) => boolean,
  isOver: (machine: T) => boolean,
  signal: AbortSignal,
];
type Defaulted = "what" | "createMs" | "hasEnded" | "hasFailed" | "isDeleted" | "isProven" | "isUnlisted";

/**
 * The machines of nodes in a cloud whose machines carry metadata: made once per node, found by id or by tag, awaited by the shared listing,
 * deleted until they are gone. Errors are the cloud's, and DriverErrors.
 */
export class NodeMachines<T> {
  readonly cloud: NodeMachinesOptions<T> & Required<Pick<NodeMachinesOptions<T>, Defaulted>>;
  readonly watch: Pick<ListWatch<T>, "all" | "whole" | "wait">;
  readonly #own: ListWatch<T> | undefined;
  readonly #creating = new Map<string, Promise<unknown>>();
  /** The machine that this process made for a tag. Null: it only looked for one. */
  readonly #known = new Map<string, string | null>();

  constructor(cloud: NodeMachinesOptions<T>) {
    const never = () => false;
    const { hasEnded = never } = cloud;
    this.cloud = {
      ...{ what: "instance", createMs: CREATE_MS, hasEnded, hasFailed: hasEnded },
      ...{ isDeleted: never, isProven: never, isUnlisted: async () => false, ...cloud },
    };
    const { clock, watch, what, idOf } = this.cloud;
    if ("list" in watch) {
      const { log, provider, ...listed } = watch;
      const onFailure = (error: unknown) =>
        log.warn({ provider, error: messageOf(error) }, `cannot list the ${what}s; will retry`);
      this.#own = new ListWatch({
        ...{ clock, idOf, onFailure, isGone: () => false },
        ...{ ...listed, what: `list of ${what}s` },
      });
    }
    this.watch = this.#own ?? (watch as ListWatch<T>);
  }

  /** Ends the listing, if it is the provider's own; callers that wait get an error. */
  close(): void {
    this.#own?.close();
  }

  /**
   * The tag's machine in any state: by the id in the node's record, if that machine has the tag, otherwise by the tag. Waits for a create
   * of this process that is still in progress for the tag. Rejects when the machine of the record exists, and nothing says whose it is any
   * more.
   */
  async existing(tag: Tag, externalId: ExternalId | null, signal: AbortSignal): Promise<T | undefined> {
    const { watch } = this;
    const { read, idIn, isDeleted } = this.cloud;
    const stored = idIn(externalId);
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
    if (fresh !== undefined || known === undefined || isDeleted(known)) return fresh;
    const single = await read(known, signal);
    if (single === undefined) return undefined;
    const own = this.#pick(new Map([[known, single]]), tag, known);
    if (own === undefined && stored === known && this.#isLost(single, tag))
      throw new LostMetadata(known, tag.nodeId);
    return own;
  }

  /** The tag's machine in a listing that begins after this call, or by the record's id, unless that is another node's. */
  async find(tag: Tag, externalId: ExternalId | null, signal: AbortSignal): Promise<T | undefined> {
    const { read, idIn } = this.cloud;
    const stored = idIn(externalId);
    const found = this.#pick(await this.watch.all(signal, true), tag, stored);
    if (found !== undefined || stored === undefined) return found;
    const single = await read(stored, signal);
    if (single === undefined || this.#isLost(single, tag)) return single;
    return this.#pick(new Map([[stored, single]]), tag, stored);
  }

  /** Whether a machine that may be used says nothing of its node. */
  #isLost(machine: T, tag: Tag): boolean {
    const { metadataOf, hasEnded } = this.cloud;
    const metadata = metadataOf(machine);
    return tagOf(metadata) === null && !namesOther(metadata, tag) && !hasEnded(machine);
  }

  /**
   * Makes a machine by `make`, and resolves to its id. The call goes on when the caller gives up, because the cloud would make the machine
   * anyway; the next `existing` waits for its end.
   */
  create(tag: Tag, make: MakeCall, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    const { clock, createMs, closed } = this.cloud;
    this.#remember(tag, this.#known.get(tagKey(tag)) ?? null);
    // Not "timeout": the machine, and so its image, has not been heard of at all.
    const late = () => new DriverError("transient", `node ${tag.nodeId}: no answer within ${createMs} ms`);
    const limit = deadline(clock, createMs, late, closed);
    const creating = this.#made(tag, make, limit.signal).then((id) => {
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

  /**
   * The machine once it is up. Rejects with why it failed, and with "not-found" when a listing would show it if it existed. Failed listings
   * only cause a delay; the signal is the limit.
   */
  async up(id: string, place: string, signal: AbortSignal): Promise<T> {
    const { isUp, hasFailed, isUnlisted } = this.cloud;
    for (;;) {
      const machine = await this.#shown("active", id, place, isUp, hasFailed, signal);
      if (machine !== null) return machine;
      if (!(await isUnlisted(id, place, signal))) throw this.#missing(id, place, "while it was being made");
    }
  }

  /** A machine of before once it `isThere`. Rejects as `up` does; `isOver`: it will not be there any more. */
  async reached(...wait: Reach<T>): Promise<T> {
    const [, id, place] = wait;
    const machine = await this.#shown(...wait);
    if (machine === null) throw this.#missing(id, place, "meanwhile");
    return machine;
  }

  /** Null: no listing shows it, though it should. */
  async #shown(...[kind, id, place, isThere, isOver, signal]: Reach<T>): Promise<T | null> {
    const machine = await this.watch.wait(
      kind,
      id,
      ({ item, sure }) => {
        if (item !== undefined) return isThere(item) || isOver(item) ? item : undefined;
        return sure ? null : undefined;
      },
      signal,
    );
    if (machine !== null && !isThere(machine)) throw await this.cloud.failure(machine, place, signal);
    return machine;
  }

  #missing(id: string, place: string, when: string): DriverError {
    return new DriverError("not-found", `${place}: ${this.cloud.what} ${id} was deleted ${when}`);
  }

  /** Requests a deletion; `gone` waits for its end. */
  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.cloud.delete(id, signal);
  }

  /**
   * Resolves when a complete listing lacks the machine. One that has not heard of its deletion is deleted again: the cloud may have answered
   * once that it does not know it. `seen`: the machine before the deletion. The signal is the only limit.
   */
  async gone(id: string, place: string, signal: AbortSignal, seen?: T): Promise<void> {
    const { clock, isLeaving, gone } = this.cloud;
    if (gone !== undefined) return gone(id, place, signal, seen, this.watch);
    for (;;) {
      const asked = clock.monotonic();
      const isUnheard = (item: T) => !isLeaving(item) && clock.monotonic() - asked > UNHEARD_MS;
      const end = await this.watch.wait(
        "gone",
        id,
        ({ item, whole, departed }) => {
          if (departed || item === undefined) return whole || departed ? "gone" : undefined;
          return isUnheard(item) ? "unheard" : undefined;
        },
        signal,
      );
      if (end === "gone") return;
      await this.delete(id, signal);
    }
  }

  async #made(tag: Tag, make: MakeCall, signal: AbortSignal): Promise<string> {
    const { clock, idOf } = this.cloud;
    const id = await make(signal);
    if (id !== undefined) return id;
    for (;;) {
      const found = this.#pick(await this.watch.all(signal, true), tag, undefined);
      if (found !== undefined) return idOf(found);
      await sleep(clock, LOOK_MS, signal);
    }
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
    const { metadataOf, hasEnded, isProven } = this.cloud;
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
