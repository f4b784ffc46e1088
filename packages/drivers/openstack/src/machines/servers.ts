import {
  ApiError,
  type Clock,
  DriverError,
  type Evidence,
  type ExternalId,
  type MakeCall,
  NoAnswer,
  NodeMachines,
  type NodeMachinesOptions,
  type OwnList,
  type Suspends,
  sameNode,
  sleep,
  type Tag,
  wasRefused,
} from "@nodeyard/driver";
import type { Api, Server } from "../api/index.ts";
import { faultError } from "../errors.ts";

/** Time limit of a create whose caller gave up, milliseconds. It continues so that its outcome becomes known. */
const CREATE_MS = 120_000;
/**
 * A server that nova calls DELETED still counts for the quota until it leaves nova's database: half a minute on a busy host. After this
 * time it is taken for gone, milliseconds. Between two reads of such a server there is a pause from LOOK_MS, doubled up to SLOW_LOOK_MS.
 */
const LINGERS_MS = 120_000;
const LOOK_MS = 500;
const SLOW_LOOK_MS = 8_000;
/** After this time a server in ERROR is taken for a deletion that nova gave up, milliseconds: without a task, and with one that never ends. */
const GIVEN_UP_MS = 5_000;
const STUCK_MS = 60_000;
/** A deletion that nova accepted is lost after this, milliseconds: its API process died before it notified the host, and further requests are ignored. */
const FORGOTTEN_MS = 120_000;
/** A server without a task after this time has not been told to end, milliseconds: nova notes the task before it answers. */
const UNHEARD_MS = 10_000;

/** What the servers of nodes are made of. */
export interface ServerParts extends Pick<OwnList<Server>, "log" | "provider"> {
  readonly api: Pick<Api, "nova" | "servers">;
  readonly clock: Clock;
  readonly evidence: Evidence;
  /** Ends creates that go on without their callers. */
  readonly closed: AbortSignal;
}

/** Path of what is done with a server. */
export const actionOf = (id: string) => `/servers/${encodeURIComponent(id)}/action`;

/** Whether the server is deleted, though nova still lists it. SOFT_DELETED: nova keeps it for a while before it is removed. */
const isGone = ({ status }: Server) => /^(SOFT_)?DELETED$/i.test(status);

/** The servers of nodes. Waiting uses the shared listing (docs/design/openstack.md); single servers are read only where a listing cannot decide. */
export function serversOf(parts: ServerParts): NodeMachines<Server> {
  const { api, clock, evidence, closed, log, provider } = parts;
  return new NodeMachines<Server>({
    ...{ clock, closed, createMs: CREATE_MS, what: "server", idIn: idOf },
    watch: {
      ...{ log, provider, isGone },
      // Many callers wait for it, so it goes before single calls at the rate limit. Changes include what was deleted.
      list: (signal, since) =>
        api.servers.list(signal, { first: true, ...(since && { query: { "changes-since": since } }) }),
      // 0 for a server of a cell that is down: it never moves the start of the next `changes-since`.
      changedAt: ({ updated }) => Date.parse(updated ?? "") || 0,
    },
    idOf: ({ id }) => id,
    metadataOf: ({ metadata }) => metadata,
    // Recorded when nova answered with the id.
    isProven: ({ id }, tag) => sameNode(evidence.tagOf("instance", id), tag),
    // A listing may miss a server that is just being assigned to its host; a read of the single server does not.
    read: async (id, signal) => {
      const server = await api.servers.get(id, signal);
      return server === undefined || isGone(server) ? undefined : server;
    },
    isUp: ({ status }) => status === "ACTIVE",
    hasFailed: (server) => server.status === "ERROR" || isGone(server),
    failure: async (server, place, signal) =>
      isGone(server)
        ? new DriverError("not-found", `${place}: server ${server.id} was deleted while it was being made`)
        : faultError(await withFault(api, server, signal), place),
    delete: (id, signal) => api.servers.delete(id, signal),
    isLeaving: isGone,
    gone: departure(parts),
  });
}

/**
 * The host keeps the RAM on its disk. nova counts the server as before, so it is there again in seconds, at the same address. Its status stays what it
 * was until the task has ended.
 */
export function suspendsOf({ api: { nova } }: Pick<ServerParts, "api">): Required<Suspends<Server>> {
  return {
    suspend: (id, signal) => nova.send("POST", actionOf(id), signal, { json: { suspend: null } }),
    resume: (id, signal) => nova.send("POST", actionOf(id), signal, { json: { resume: null } }),
    restOf({ status, "OS-EXT-STS:task_state": task }) {
      if (task === "suspending" || task === "resuming") return task;
      return status === "SUSPENDED" ? "suspended" : undefined;
    },
  };
}

/** The call that makes the server of a tag. The caller has looked for an existing server: nova would make a second one. */
export function createCall({ api, evidence }: Pick<ServerParts, "api" | "evidence">, tag: Tag, body: object) {
  return (async (signal) => {
    const { id } = await api.servers.create(body, signal);
    // Ports name only the server's id. Recorded at once, because the launcher may die before it sees the server again.
    evidence.record("instance", id, tag);
    return id;
  }) satisfies MakeCall;
}

/** nova's listing has the faults of one cell only, and servers that found no host ("No valid host") are in another one (cell0). */
async function withFault({ servers }: ServerParts["api"], server: Server, signal: AbortSignal) {
  if (server.fault) return server;
  try {
    return (await servers.get(server.id, signal)) ?? server;
  } catch (error) {
    signal.throwIfAborted();
    // The fault only improves the message.
    if (error instanceof ApiError || error instanceof NoAnswer) return server;
    throw error;
  }
}

type Gone = NonNullable<NodeMachinesOptions<Server>["gone"]>;

/** A deletion that was requested: when, by the monotonic clock, and whether for the last time. */
type Deletion = { asked: number; isLast: boolean };

/** `gone` of `NodeMachines` for nova, which loses deletions, gives them up, and calls them done before the quota is free. */
function departure({ api: { nova, servers }, clock }: ServerParts): Gone {
  /**
   * Waits for the end of a deletion. nova says DELETED before it frees the quota, seconds before under load: "freed" means that a complete listing no
   * longer contains the server. "doubtful": only changes were listed, or the server may be on its way to its host, when a listing can miss it.
   */
  const leaving = (order: Deletion, ...[id, place, signal, seen, watch]: Parameters<Gone>) => {
    // Whether the server has certainly been on a host, so that complete listings show it until its end.
    let placed = seen !== undefined && seen.status !== "BUILD";
    let saidDeleted: number | undefined;
    return watch.wait(
      "gone",
      id,
      ({ item: server, whole }) => {
        if (server === undefined) return whole && placed ? "freed" : "doubtful";
        const now = clock.monotonic();
        if (!isGone(server)) {
          placed ||= server.status !== "BUILD";
          return stalled(server, order, now, place);
        }
        if (!whole) return "doubtful";
        placed = true;
        saidDeleted ??= now;
        return now - saidDeleted > LINGERS_MS ? "freed" : undefined;
      },
      signal,
    );
  };

  /** Polls the single server: only 404 means that it is gone. A cloud that keeps saying DELETED is believed after LINGERS_MS. */
  const freed = async (id: string, signal: AbortSignal) => {
    const started = clock.monotonic();
    for (let pause = LOOK_MS; ; pause = Math.min(SLOW_LOOK_MS, pause * 2)) {
      const server = await servers.get(id, signal);
      if (server === undefined) return true;
      if (!isGone(server)) return false;
      if (clock.monotonic() - started > LINGERS_MS) return true;
      await sleep(clock, pause, signal);
    }
  };

  /** Makes nova take a request again. By default only administrators may do so. When the first request was only slow, the host treats both as one. */
  const reset = async (id: string, place: string, signal: AbortSignal) => {
    const json = { "os-resetState": { state: "error" } };
    try {
      await nova.send("POST", actionOf(id), signal, { json });
    } catch (error) {
      if (wasRefused(error, 404)) return;
      if (!wasRefused(error, 403)) throw error;
      throw new DriverError(
        "transient",
        `${place}: nova has lost the deletion of server ${id} and ignores further requests; an administrator ` +
          `can fix it with "openstack server set --state error ${id}", or by restarting nova-compute on its host`,
        { cause: error },
      );
    }
  };

  const gone: Gone = async (id, place, signal, ...rest) => {
    const order = { asked: clock.monotonic(), isLast: false };
    for (;;) {
      const now = await leaving(order, id, place, signal, ...rest);
      if (now === "freed" || (now === "doubtful" && (await freed(id, signal)))) return;
      if (now === "doubtful") continue;
      if (now === "forgotten") {
        await reset(id, place, signal);
        order.isLast = true;
      }
      await servers.delete(id, signal);
      order.asked = clock.monotonic();
    }
  };
  return gone;
}

/**
 * The state of a deletion whose server is still there; undefined: it is under way. "unheard": nova was asked, and does nothing.
 * "forgotten": nova has called it "deleting" for so long that its host was probably never notified. Throws for one that nova gave up.
 */
function stalled(server: Server, { asked, isLast }: Deletion, now: number, place: string) {
  const { id, status, fault, "OS-EXT-STS:task_state": task } = server;
  if (task === null && status !== "ERROR" && now - asked > UNHEARD_MS) return "unheard";
  // Without a limit here the step's deadline decides.
  const ofTask = task === "deleting" ? FORGOTTEN_MS : Number.POSITIVE_INFINITY;
  const limitMs = status !== "ERROR" ? ofTask : task ? STUCK_MS : GIVEN_UP_MS;
  if (now - asked <= limitMs) return undefined;
  if (task === "deleting" && !isLast) return "forgotten";
  const why = fault?.message.trim() || "no fault is given";
  throw new DriverError("transient", `${place}: server ${id} was not deleted: ${why}`);
}

/** The server id. Older versions stored an object with `id` instead of a string. */
export function idOf(externalId: ExternalId | null): string | undefined {
  const id = typeof externalId === "object" ? externalId?.id : externalId;
  return typeof id === "string" && id !== "" ? id : undefined;
}
