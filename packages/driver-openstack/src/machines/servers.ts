import {
  abortable,
  DriverError,
  type Evidence,
  type ExternalId,
  isOlder,
  type ListWatch,
  sameNode,
  type Tag,
  tagOf,
} from "@nodeyard/driver";
import { type Clock, deadline, sleep } from "@nodeyard/runtime";
import { type Compute, isGone, type Server } from "../api/compute.ts";
import { ApiError, NoAnswer } from "../client/index.ts";
import { faultError } from "../errors.ts";
import { tagKey } from "../tags.ts";

/** A create whose caller gave up may go on for this long, so that its end is known; milliseconds. */
const CREATE_MS = 120_000;
/** A deletion that nova gave up is told after this long, milliseconds. */
const GIVEN_UP_MS = 5_000;
/** What nova calls DELETED counts until its database has it no more, half a minute on a busy host; believed after this, milliseconds. */
const LINGERS_MS = 120_000;
const LOOK_MS = 500;
const SLOW_LOOK_MS = 8_000;
/** One that it gave up without saying so. */
const STUCK_MS = 60_000;
/** A deletion that nova has accepted and does nothing about: its API died before it notified the host. It ignores all further ones. */
const FORGOTTEN_MS = 120_000;
/** Nodes whose calls were all made by this process: what a list of a moment ago shows of them is all there is. */
const MOST_KNOWN = 10_000;

interface Order {
  /** Monotonic time, milliseconds. */
  readonly at: number;
  /** It was given again already. */
  readonly last: boolean;
}

/** Servers of nodes: made once, found by id or tag, deleted until they are gone. */
export class Servers {
  readonly #nova: Compute;
  readonly #watch: ListWatch<Server>;
  readonly #clock: Clock;
  readonly #evidence: Evidence;
  readonly #creating = new Map<string, Promise<unknown>>();
  readonly #touched = new Set<string>();
  readonly #closed: AbortSignal;

  constructor(parts: {
    readonly nova: Compute;
    readonly watch: ListWatch<Server>;
    readonly clock: Clock;
    readonly evidence: Evidence;
    readonly closed: AbortSignal;
  }) {
    this.#nova = parts.nova;
    this.#watch = parts.watch;
    this.#clock = parts.clock;
    this.#evidence = parts.evidence;
    this.#closed = parts.closed;
  }

  /** The tag's server, whatever its state: by the stored id where that is really its own, else by the tag. */
  async existing(tag: Tag, externalId: ExternalId | null, signal: AbortSignal): Promise<Server | undefined> {
    // A create that was given up still makes its server; only then it can be found.
    await this.#creating.get(tagKey(tag))?.catch(() => {});
    signal.throwIfAborted();
    const known = idOf(externalId);
    const before = this.#touch(tag);
    const found = pick(await this.#watch.all(signal, false), tag, known);
    // Nothing was ever made for a tag that nobody asked for, so the list of a moment ago is good enough.
    if (found !== undefined || (known === undefined && !before)) return found;
    const fresh = pick(await this.#watch.all(signal, true), tag, known);
    if (fresh !== undefined || known === undefined) return fresh;
    // A listing may miss a server that is just handed to its host; a look at the server itself does not.
    const single = await this.#nova.server(known, signal);
    return single === undefined || isGone(single) ? undefined : pick(new Map([[known, single]]), tag, known);
  }

  /**
   * The id of a new server. The call goes on when the caller gives up: nova would make the server anyway, and whoever looks
   * for it next waits for the answer.
   */
  async create(tag: Tag, body: object, signal: AbortSignal): Promise<string> {
    signal.throwIfAborted();
    this.#touch(tag);
    const late = () =>
      new NoAnswer("compute", { method: "POST", url: "/servers" }, new Error(`not within ${CREATE_MS} ms`));
    const limit = deadline(this.#clock, CREATE_MS, late, this.#closed);
    const creating = this.#nova.create(body, limit.signal).then((id) => {
      this.#evidence.record("instance", id, tag);
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

  /** The server once it is up. Rejects with what its fault means. */
  async active(id: string, place: string, signal: AbortSignal): Promise<Server> {
    const server = await this.#booted(id, place, signal);
    if (server.status === "ERROR") throw faultError(await this.#withFault(server, signal), place);
    this.#remember(server);
    return server;
  }

  #booted(id: string, place: string, signal: AbortSignal): Promise<Server> {
    return this.#watch.wait(
      "active",
      id,
      ({ item: server, sure }) => {
        if (server === undefined || isGone(server)) {
          if (server === undefined && !sure) return undefined;
          throw new DriverError("not-found", `${place}: server ${id} was deleted while it was being made`);
        }
        return ["ACTIVE", "ERROR"].includes(server.status) ? server : undefined;
      },
      signal,
    );
  }

  /**
   * nova lists faults out of one cell alone, and those of servers that found no host are in another (cell0): without this look "No
   * valid host" would be an error that says nothing.
   */
  async #withFault(server: Server, signal: AbortSignal): Promise<Server> {
    if (server.fault) return server;
    try {
      return (await this.#nova.server(server.id, signal)) ?? server;
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof ApiError || error instanceof NoAnswer) return server;
      throw error;
    }
  }

  async delete(id: string, signal: AbortSignal): Promise<void> {
    await this.#nova.delete(id, signal);
  }

  /**
   * Until the server is away and its quota free. A deletion that nova gave up is an error: it has to be ordered anew. `seen`: the
   * server as it was before.
   */
  async gone(id: string, place: string, signal: AbortSignal, seen?: Server): Promise<void> {
    let order: Order = { at: this.#clock.monotonic(), last: false };
    for (;;) {
      const now = await this.#leaving(id, place, order, seen, signal);
      if (now === "freed") return;
      if (now === "forgotten") {
        await this.#deleteAnew(id, place, signal);
        order = { at: this.#clock.monotonic(), last: true };
      } else if (await this.#freed(id, signal)) return;
    }
  }

  /** Its host takes two orders for one, should the first only have been slow. */
  async #deleteAnew(id: string, place: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#nova.resetState(id, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || ![403, 404].includes(error.status)) throw error;
      if (error.status === 404) return;
      throw new DriverError(
        "transient",
        `${place}: nova has lost the deletion of server ${id} and ignores further requests; an administrator ` +
          `can fix it with "openstack server set --state error ${id}", or by restarting nova-compute on its host`,
        { cause: error },
      );
    }
    await this.#nova.delete(id, signal);
  }

  /**
   * nova says DELETED before it counts one less, under load by seconds: "freed" is a server that a listing of all shows no more.
   * "doubtful": only changes were listed, or it may be on its way to its host, when a listing can miss it. "forgotten": nova has
   * called it "deleting" for so long that its host was probably never notified.
   */
  #leaving(
    id: string,
    place: string,
    order: Order,
    seen: Server | undefined,
    signal: AbortSignal,
  ): Promise<"freed" | "doubtful" | "forgotten"> {
    let placed = seen !== undefined && seen.status !== "BUILD";
    let saidDeleted: number | undefined;
    return this.#watch.wait(
      "gone",
      id,
      ({ item: server, whole }) => {
        if (server === undefined) return whole && placed ? "freed" : "doubtful";
        const now = this.#clock.monotonic();
        if (isGone(server)) {
          if (!whole) return "doubtful";
          placed = true;
          saidDeleted ??= now;
          return now - saidDeleted > LINGERS_MS ? "freed" : undefined;
        }
        placed ||= server.status !== "BUILD";
        const task = server["OS-EXT-STS:task_state"];
        if (now - order.at <= patience(server.status, task)) return undefined;
        if (task === "deleting" && !order.last) return "forgotten";
        const why = server.fault?.message.trim() || "no fault is given";
        throw new DriverError("transient", `${place}: server ${id} was not deleted: ${why}`);
      },
      signal,
    );
  }

  /** By looks at the server itself: only 404 is the end. A cloud that goes on saying DELETED is believed after a while. */
  async #freed(id: string, signal: AbortSignal): Promise<boolean> {
    const started = this.#clock.monotonic();
    for (let pause = LOOK_MS; ; pause = Math.min(SLOW_LOOK_MS, pause * 2)) {
      const server = await this.#nova.server(id, signal);
      if (server === undefined) return true;
      if (!isGone(server)) return false;
      if (this.#clock.monotonic() - started > LINGERS_MS) return true;
      await sleep(this.#clock, pause, signal);
    }
  }

  /** The node is gone; its tag comes back only in another process's tree. */
  forget(tag: Tag): void {
    this.#touched.delete(tagKey(tag));
  }

  /** Volumes have no mark: what they belong to is known only while they are attached. */
  #remember(server: Server): void {
    const tag = tagOf(server.metadata);
    if (tag === null) return;
    for (const { id } of server["os-extended-volumes:volumes_attached"])
      this.#evidence.record("volume", id, tag);
  }

  /** True: calls were made for this tag before. */
  #touch(tag: Tag): boolean {
    const key = tagKey(tag);
    const before = this.#touched.has(key);
    if (this.#touched.size >= MOST_KNOWN) this.#touched.clear();
    this.#touched.add(key);
    return before;
  }
}

/** Today's ids are strings; an object with an `id` is the shape of an older version. */
export function idOf(externalId: ExternalId | null): string | undefined {
  const id = typeof externalId === "object" ? externalId?.id : externalId;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** How long after the order a server that looks like this may still leave, milliseconds. */
function patience(status: string, task: string | null | undefined): number {
  if (status === "ERROR") return task ? STUCK_MS : GIVEN_UP_MS;
  return task === "deleting" ? FORGOTTEN_MS : Number.POSITIVE_INFINITY;
}

function pick(listed: ReadonlyMap<string, Server>, tag: Tag, id: string | undefined): Server | undefined {
  const server = id === undefined ? undefined : listed.get(id);
  if (server !== undefined && (sameNode(tagOf(server.metadata), tag) || isOlder(server.metadata, tag)))
    return server;
  for (const one of listed.values()) if (sameNode(tagOf(one.metadata), tag)) return one;
  return undefined;
}
