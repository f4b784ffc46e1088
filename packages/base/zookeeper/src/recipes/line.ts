/**
 * The contender primitive of locks and elections: creating a contender, waiting until it is first, removing it. It is the one place
 * that decides what happened to a contender whose create got no reply. The lock and the election of this package use it, and so can
 * other packages with a client of their own.
 */
import { sortContenders } from "./contenders.ts";

/** Tries of one attempt after its connection broke. Each try waits for the next connection, so reconnecting is the back-off. */
const ATTEMPTS = 20;

/** Limits of one call. */
export interface LineCall {
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

/** A contender to create. It stays the same over all tries of one attempt. */
export interface Entry {
  readonly parent: string;
  /** `<32 hex>__lock__`. Chosen before the first try, so that a later try finds the contender of a create whose reply was lost. */
  readonly prefix: string;
  readonly data: Uint8Array;
  /** Creates a contender that outlives its session: only `withdraw` or `leave` removes it. */
  readonly durable?: boolean;
  /**
   * Whether a missing lock parent is created. Only that znode is created, never the path above it: locking an object that was deleted
   * must not create the object again as an empty znode.
   */
  readonly createParent?: boolean;
  /** The first broken connection ends the attempt. The contender is withdrawn before the attempt rejects. */
  readonly once?: boolean;
  /** A create of this attempt had an unknown outcome, so a contender that no caller knows of may exist. */
  doubtful: boolean;
}

/** A contender that exists under the lock parent. */
export interface Place {
  readonly path: string;
  /** The session that owns the contender; 0n for a durable one. */
  readonly owner: bigint;
  /** The contender is first by construction: it was created in one transaction with its lock parent. */
  readonly fresh: boolean;
}

/**
 * What this module needs of a client. Errors carry `outcome` and a `code` that ends like the codes of this package (`no_node`,
 * `connection_lost`, ...); the part before the dot may differ.
 */
export interface LineClient {
  /** Id of the current session. */
  session(): bigint;
  /** Creates the contender and, with `withParent`, the lock parent as well. */
  create(entry: Entry, withParent: boolean, call: LineCall): Promise<Place>;
  children(path: string, call: LineCall): Promise<readonly string[]>;
  /** The session that owns the znode; undefined when the znode does not exist. */
  owner(path: string, call: LineCall): Promise<bigint | undefined>;
  /** Resolves when later reads, on any server, see every write that was acknowledged before this call. */
  sync(path: string, call: LineCall): Promise<unknown>;
  delete(path: string, call: LineCall): Promise<unknown>;
  /** Resolves when the znode is deleted, when it may have been deleted unnoticed, or when the session changes. */
  departure(path: string, call: LineCall): Promise<void>;
}

/**
 * Takes a lock. With `patient` it waits until the contender is first; otherwise it returns undefined when another contender is first.
 * Rejects with the client's own errors. The contender is then withdrawn, in the background unless `entry.once` is set.
 */
export async function contend(
  client: LineClient,
  entry: Entry,
  patient: boolean,
  call: LineCall,
): Promise<Place | undefined> {
  let place: Place | undefined;
  try {
    for (;;) {
      const entered = await join(client, entry, true, call, patient);
      place = entered.place;
      let { names } = entered;
      for (;;) {
        const before = place.fresh ? undefined : await predecessor(client, entry, place, names, call);
        names = undefined;
        if (before === undefined && isCurrent(client, place)) return place;
        if (!patient) {
          await withdraw(client, entry, place, call);
          return undefined;
        }
        // The contender was deleted with its session or by another client: create a new one.
        if (before === undefined || before === ABSENT) break;
        await client.departure(`${entry.parent}/${before}`, call);
      }
      place = undefined;
    }
  } catch (error) {
    // Withdraw even when the caller's deadline has passed: a contender that remains would block the lock for everybody.
    const gone = withdraw(client, entry, place, {});
    if (entry.once === true) await gone;
    else gone.catch(() => undefined);
    throw error;
  }
}

/** Creates a contender, or adopts the one that an earlier try created without seeing the reply. Does not check whether it is first. */
export async function enter(client: LineClient, entry: Entry, call: LineCall): Promise<Place> {
  return (await join(client, entry, false, call)).place;
}

interface Joined {
  readonly place: Place;
  /** The children of the lock parent, read right after the create. */
  readonly names: Promise<readonly string[]> | undefined;
}

async function join(
  client: LineClient,
  entry: Entry,
  look: boolean,
  call: LineCall,
  patient = false,
): Promise<Joined> {
  let withParent = false;
  for (let attempt = 1; ; attempt++) {
    try {
      const adopted = entry.doubtful ? await adopt(client, entry, call) : undefined;
      if (adopted !== undefined) return { place: adopted, names: undefined };
      const made = client.create(entry, withParent, call);
      // Pipelined behind the create, without waiting for its reply: the first look at the line costs no round trip of its own.
      const names = look && !withParent ? client.children(entry.parent, call) : undefined;
      names?.catch(() => undefined);
      return { place: await made, names };
    } catch (error) {
      const { kind, outcome } = facts(error);
      if (outcome === "unknown") entry.doubtful = true;
      const lacksParent: boolean = kind === "no_node" && entry.createParent === true && !withParent;
      // Another client created the parent meanwhile: retry without the parent.
      const hasParent: boolean = kind === "node_exists" && withParent;
      const again: boolean = lacksParent || hasParent || mayRepeat(entry, error, patient);
      if (!again || attempt >= ATTEMPTS) throw error;
      if (lacksParent || hasParent) withParent = lacksParent;
    }
  }
}

/**
 * Whether the create may be sent again. A create that was never sent belonged to the session that ended; only a caller that waits in any
 * case wants a contender in the next session.
 */
function mayRepeat(entry: Entry, error: unknown, patient: boolean): boolean {
  return entry.once !== true && isLost(error) && (patient || facts(error).outcome === "unknown");
}

/**
 * Removes what an attempt created, over broken connections: the known contender, or every contender that an unknown outcome may have left.
 */
export async function withdraw(
  client: LineClient,
  entry: Entry,
  place: Place | undefined,
  call: LineCall,
): Promise<void> {
  if (!entry.doubtful) {
    if (place !== undefined) await leave(client, place.path, call, entry.durable);
    return;
  }
  await retryInterrupted(client, entry.durable, async () => {
    const own = await ownContenders(client, entry, call);
    await Promise.all(own.map((path) => client.delete(path, call).catch(unlessMissing)));
  });
}

/** Deletes a contender, retrying over broken connections. A contender that no longer exists is no error. */
export function leave(client: LineClient, path: string, call: LineCall, durable = false): Promise<void> {
  return retryInterrupted(client, durable, async () => {
    await client.delete(path, call).catch(unlessMissing);
  });
}

const ABSENT = Symbol("not in the line");

/** Name of the contender right before this one; undefined when this one is first; ABSENT when it is not in the line. */
async function predecessor(
  client: LineClient,
  { parent, once }: Entry,
  place: Place,
  first: Promise<readonly string[]> | undefined,
  call: LineCall,
): Promise<string | typeof ABSENT | undefined> {
  let names = first;
  for (let attempt = 1; ; attempt++) {
    try {
      const line = sortContenders(await (names ?? client.children(parent, call)));
      const index = line.indexOf(place.path.slice(parent.length + 1));
      return index < 0 ? ABSENT : line[index - 1];
    } catch (error) {
      if (facts(error).kind === "no_node") return ABSENT;
      if (once === true || !isLost(error) || attempt >= ATTEMPTS) throw error;
      names = undefined;
    }
  }
}

/** Finds the contender that an earlier try created. A contender of an earlier session is ignored: the server is about to delete it. */
async function adopt(client: LineClient, entry: Entry, call: LineCall): Promise<Place | undefined> {
  for (const path of await ownContenders(client, entry, call)) {
    const owner = await client.owner(path, call);
    if (owner === undefined) continue;
    if (entry.durable === true || owner === client.session()) return { path, owner, fresh: false };
  }
  return undefined;
}

async function ownContenders(client: LineClient, entry: Entry, call: LineCall): Promise<string[]> {
  const { parent, prefix } = entry;
  // This connection may lead to a server that has not yet applied the create that was sent to the previous server.
  await client.sync(parent, call);
  const names = (await client.children(parent, call).catch(unlessMissing)) ?? [];
  return names
    .filter((name) => name.startsWith(prefix))
    .sort()
    .map((name) => `${parent}/${name}`);
}

/**
 * Repeats `work` while broken connections interrupt it, for as long as the session stays the same: a contender that stays behind in a
 * live session blocks the lock for ever, whereas the end of the session deletes it. Each try waits for the next connection. For deadlines
 * of the caller, and for durable contenders (which no session end deletes), the number of tries is limited.
 */
async function retryInterrupted(
  client: LineClient,
  durable: boolean | undefined,
  work: () => Promise<void>,
): Promise<void> {
  const session = client.session();
  for (let attempt = 1; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isLost(error) && !OVERDUE.has(facts(error).kind)) throw error;
      if (durable !== true && client.session() !== session) return;
      if (attempt >= ATTEMPTS && (durable === true || !isLost(error))) throw error;
    }
  }
}

function isCurrent(client: LineClient, { owner }: Place): boolean {
  return owner === 0n || owner === client.session();
}

const LOST: ReadonlySet<string> = new Set(["connection_lost", "session_expired", "session_moved"]);
const OVERDUE: ReadonlySet<string> = new Set(["deadline_exceeded", "call_ended"]);

/** The connection or the session failed. The client repairs both by itself, so the call may be repeated. */
function isLost(error: unknown): boolean {
  return LOST.has(facts(error).kind);
}

function unlessMissing(error: unknown): undefined {
  if (facts(error).kind !== "no_node") throw error;
}

function facts(error: unknown): { readonly kind: string; readonly outcome: string | undefined } {
  const { code = "", outcome } = error as { readonly code?: string; readonly outcome?: string };
  return { kind: code.slice(code.indexOf(".") + 1), outcome };
}
