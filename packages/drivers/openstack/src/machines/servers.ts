import {
  ApiError,
  DriverError,
  type Evidence,
  type ExternalId,
  type ListWatch,
  type MakeCall,
  NoAnswer,
  NodeMachines,
  sameNode,
  type Tag,
} from "@nodeyard/driver";
import { type Clock, sleep } from "@nodeyard/runtime";
import { type Compute, isGone, type Server } from "../api/compute.ts";
import { faultError } from "../errors.ts";

/** Time limit of a create whose caller gave up, milliseconds. It continues so that its outcome becomes known. */
const CREATE_MS = 120_000;
/** After this time a server in ERROR without a task is taken for a deletion that nova gave up, milliseconds. */
const GIVEN_UP_MS = 5_000;
/**
 * A server that nova calls DELETED still counts for the quota until it leaves nova's database: half a minute on a busy host. After this
 * time it is taken for gone, milliseconds.
 */
const LINGERS_MS = 120_000;
/** First pause between two reads of a single server that nova calls DELETED, milliseconds. It doubles up to SLOW_LOOK_MS. */
const LOOK_MS = 500;
const SLOW_LOOK_MS = 8_000;
/** The same for a server in ERROR whose task never ends, milliseconds. */
const STUCK_MS = 60_000;
/**
 * After this time a deletion that nova accepted is taken for lost, milliseconds: its API process died before it notified the host, and nova
 * ignores further requests.
 */
const FORGOTTEN_MS = 120_000;

/** A server without a task after this time has not been told to end, milliseconds: nova notes the task before it answers. */
const UNHEARD_MS = 10_000;

/** A request to delete a server, as `Departures.end` waits for its effect. */
interface Order {
  /** Monotonic time of the request, milliseconds. */
  readonly at: number;
  /** The deletion was already requested again. */
  readonly last: boolean;
}

/** What the servers of nodes are made of. */
export interface ServerParts {
  readonly nova: Compute;
  readonly watch: ListWatch<Server>;
  readonly clock: Clock;
  readonly evidence: Evidence;
  /** Ends creates that go on without their callers. */
  readonly closed: AbortSignal;
}

/**
 * The servers of nodes. Waiting uses the shared listing (docs/design/openstack.md); single servers are read only where a listing cannot
 * decide.
 */
export function serversOf({ nova, watch, clock, evidence, closed }: ServerParts): NodeMachines<Server> {
  const departures = new Departures(nova, watch, clock);
  return new NodeMachines({
    ...{ clock, watch, closed, createMs: CREATE_MS, what: "server", idIn: idOf },
    idOf: ({ id }) => id,
    metadataOf: ({ metadata }) => metadata,
    // Recorded when nova answered with the id.
    isProven: ({ id }, tag) => sameNode(evidence.tagOf("instance", id), tag),
    // A listing may miss a server that is just being assigned to its host; a read of the single server does not.
    read: async (id, signal) => {
      const server = await nova.server(id, signal);
      return server === undefined || isGone(server) ? undefined : server;
    },
    isUp: ({ status }) => status === "ACTIVE",
    hasFailed: (server) => server.status === "ERROR" || isGone(server),
    failure: async (server, place, signal) =>
      isGone(server)
        ? new DriverError("not-found", `${place}: server ${server.id} was deleted while it was being made`)
        : faultError(await withFault(nova, server, signal), place),
    delete: (id, signal) => nova.delete(id, signal),
    isLeaving: isGone,
    gone: (...departure) => departures.end(...departure),
  });
}

/** The call that makes the server of a tag. The caller has looked for an existing server: nova would make a second one. */
export function createCall(
  { nova, evidence }: Pick<ServerParts, "nova" | "evidence">,
  tag: Tag,
  body: object,
): MakeCall {
  return async (signal) => {
    const id = await nova.create(body, signal);
    // Ports name only the server's id. Recorded at once, because the launcher may die before it sees the server again.
    evidence.record("instance", id, tag);
    return id;
  };
}

/**
 * Adds the fault. nova's listing contains the faults of one cell only, and servers that found no host are in another one (cell0).
 * Without a read of the single server, the message "No valid host" would be missing.
 */
async function withFault(nova: Compute, server: Server, signal: AbortSignal): Promise<Server> {
  if (server.fault) return server;
  try {
    return (await nova.server(server.id, signal)) ?? server;
  } catch (error) {
    signal.throwIfAborted();
    // The fault only improves the message.
    if (error instanceof ApiError || error instanceof NoAnswer) return server;
    throw error;
  }
}

/** Ends of deletions, which nova loses, gives up, and calls done before the quota is free. */
class Departures {
  readonly #nova: Compute;
  readonly #watch: ListWatch<Server>;
  readonly #clock: Clock;

  constructor(nova: Compute, watch: ListWatch<Server>, clock: Clock) {
    this.#nova = nova;
    this.#watch = watch;
    this.#clock = clock;
  }

  /**
   * Resolves when the server is gone and its quota is free. A deletion that nova gave up is an error, and must be requested again.
   * `seen`: the server before the deletion, which tells whether it was on a host already. The caller's signal is the only time limit.
   */
  async end(id: string, place: string, signal: AbortSignal, seen?: Server): Promise<void> {
    let order: Order = { at: this.#clock.monotonic(), last: false };
    for (;;) {
      const now = await this.#leaving(id, place, order, seen, signal);
      if (now === "freed") return;
      if (now === "unheard") {
        await this.#nova.delete(id, signal);
        order = { ...order, at: this.#clock.monotonic() };
      } else if (now === "forgotten") {
        await this.#deleteAnew(id, place, signal);
        order = { at: this.#clock.monotonic(), last: true };
      } else if (await this.#freed(id, signal)) return;
    }
  }

  /** Requests the deletion again. When the first request was only slow, the host treats both as one. */
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
   * Waits for the end of a deletion. nova says DELETED before it frees the quota, seconds before under load: "freed" means that a
   * complete listing no longer contains the server. "doubtful": only changes were listed, or the server may be on its way to its host,
   * when a listing can miss it. "unheard": nova was asked, and does nothing. "forgotten": nova has called it "deleting" for so long that its
   * host was probably never notified.
   */
  #leaving(
    id: string,
    place: string,
    order: Order,
    seen: Server | undefined,
    signal: AbortSignal,
  ): Promise<"freed" | "doubtful" | "unheard" | "forgotten"> {
    // Whether the server has certainly been on a host, so that complete listings show it until its end.
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
        if (task === null && server.status !== "ERROR" && now - order.at > UNHEARD_MS) return "unheard";
        if (now - order.at <= patience(server.status, task)) return undefined;
        if (task === "deleting" && !order.last) return "forgotten";
        const why = server.fault?.message.trim() || "no fault is given";
        throw new DriverError("transient", `${place}: server ${id} was not deleted: ${why}`);
      },
      signal,
    );
  }

  /** Polls the single server: only 404 means that it is gone. A cloud that keeps saying DELETED is believed after LINGERS_MS. */
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
}

/** The server id. Older versions stored an object with `id` instead of a string. */
export function idOf(externalId: ExternalId | null): string | undefined {
  const id = typeof externalId === "object" ? externalId?.id : externalId;
  return typeof id === "string" && id !== "" ? id : undefined;
}

/** How long after the request a server in this state may still be deleted, milliseconds. Infinity: the step's deadline decides. */
function patience(status: string, task: string | null | undefined): number {
  if (status === "ERROR") return task ? STUCK_MS : GIVEN_UP_MS;
  return task === "deleting" ? FORGOTTEN_MS : Number.POSITIVE_INFINITY;
}
