/**
 * Standing in the line of a lock: the one place that decides what became of a contender whose reply was lost. The lock and the
 * election of this package are made of it, and so may be others on a client of their own.
 */
import { sortContenders } from "./contenders.ts";

/** How often one attempt is made again after its connection broke. Calls wait for the next connection, which is the back-off. */
const ATTEMPTS = 20;

/** A limit of one call. */
export interface LineCall {
  readonly signal?: AbortSignal;
  readonly deadlineMs?: number;
}

/** A contender, as it is asked for. It stays the same over all tries of one attempt. */
export interface Entry {
  readonly parent: string;
  /** `<32 hex>__lock__`: fixed before the first try, so that after a lost reply our contender is found by it. */
  readonly prefix: string;
  readonly data: Uint8Array;
  /** Outlives its session, and ends by `withdraw` or `leave` alone. */
  readonly durable?: boolean;
  /**
   * Whether the lock parent is made where it is missing: that one znode, never what is above it, so that the lock of an object
   * which is gone does not bring its path back.
   */
  readonly createParent?: boolean;
  /** The first broken connection ends the attempt: its contender is withdrawn before the attempt rejects. */
  readonly once?: boolean;
  /** A create may have left a contender that nobody has seen. */
  doubtful: boolean;
}

/** A contender that stands in the line. */
export interface Place {
  readonly path: string;
  /** Session that it ends with; 0n for a durable one. */
  readonly owner: bigint;
  /** First by construction: the lock parent came with it, in one transaction. */
  readonly fresh: boolean;
}

/**
 * What a line needs of the client. Errors carry `outcome` and a `code` that ends as those of this package do (`no_node`,
 * `connection_lost`, ...), whatever stands before the dot.
 */
export interface LineClient {
  /** The session now. */
  session(): bigint;
  /** Makes the contender and, with `withParent`, the lock parent in the same transaction. */
  create(entry: Entry, withParent: boolean, call: LineCall): Promise<Place>;
  children(path: string, call: LineCall): Promise<readonly string[]>;
  /** The session that a znode ends with; undefined where there is no znode. */
  owner(path: string, call: LineCall): Promise<bigint | undefined>;
  /** Resolves when what was acknowledged before the call shows in reads after it, whichever server is asked. */
  sync(path: string, call: LineCall): Promise<unknown>;
  delete(path: string, call: LineCall): Promise<unknown>;
  /** Resolves when the znode is gone or may be, and when the session is another. */
  departure(path: string, call: LineCall): Promise<void>;
}

/**
 * Takes a lock: waiting for it in the line, or (`patient` false) undefined when someone else has it. Rejects with the client's
 * own errors; what it made is then withdrawn, if need be after it has rejected.
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
        // Gone from the line with its session, or by another's hand: it stands in line again.
        if (before === undefined || before === ABSENT) break;
        await client.departure(`${entry.parent}/${before}`, call);
      }
      place = undefined;
    }
  } catch (error) {
    // Even after the caller's limit: a contender that stayed behind would block the line.
    const gone = withdraw(client, entry, place, {});
    if (entry.once === true) await gone;
    else gone.catch(() => undefined);
    throw error;
  }
}

/** Puts a contender into the line, or finds the one that an earlier try has put there unnoticed, and does not look who is first. */
export async function enter(client: LineClient, entry: Entry, call: LineCall): Promise<Place> {
  return (await join(client, entry, false, call)).place;
}

interface Joined {
  readonly place: Place;
  /** The line as it was behind the create. */
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
      // Sent behind the create without waiting for its reply: the first look at the line costs no round trip of its own.
      const names = look && !withParent ? client.children(entry.parent, call) : undefined;
      names?.catch(() => undefined);
      return { place: await made, names };
    } catch (error) {
      const { kind, outcome } = facts(error);
      if (outcome === "unknown") entry.doubtful = true;
      const lacksParent: boolean = kind === "no_node" && entry.createParent === true && !withParent;
      // Someone made the parent meanwhile, and its line is there to be joined.
      const hasParent: boolean = kind === "node_exists" && withParent;
      const again: boolean = lacksParent || hasParent || mayRepeat(entry, error, patient);
      if (!again || attempt >= ATTEMPTS) throw error;
      if (lacksParent || hasParent) withParent = lacksParent;
    }
  }
}

/** What was never sent was meant for the session that is over; only who waits in any case asks again in the next one. */
function mayRepeat(entry: Entry, error: unknown, patient: boolean): boolean {
  return entry.once !== true && isLost(error) && (patient || facts(error).outcome === "unknown");
}

/** Takes what an attempt made out of the line, over broken connections: a known contender, or whatever an unknown outcome left. */
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
  await insist(client, entry.durable, async () => {
    const own = await ownContenders(client, entry, call);
    await Promise.all(own.map((path) => client.delete(path, call).catch(unlessMissing)));
  });
}

/** Deletes a contender, over broken connections; one that is gone already is no error. */
export function leave(client: LineClient, path: string, call: LineCall, durable = false): Promise<void> {
  return insist(client, durable, async () => {
    await client.delete(path, call).catch(unlessMissing);
  });
}

const ABSENT = Symbol("not in the line");

/** Name of the contender right before ours; undefined when ours is first. */
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

/** A contender of an earlier session is about to vanish and no place to hold. */
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
  // The connection may be to another server now, which has not carried out yet what the one before was asked for.
  await client.sync(parent, call);
  const names = (await client.children(parent, call).catch(unlessMissing)) ?? [];
  return names
    .filter((name) => name.startsWith(prefix))
    .sort()
    .map((name) => `${parent}/${name}`);
}

/**
 * Repeats `work` while it is interrupted. Over broken connections it does so for as long as the session is the one that it was: its end
 * does the same, and a contender that stayed behind in a session that lives would block the line for ever. Each try waits for the next
 * connection. Limits of the caller, and what no session ends, are put up with for a number of tries.
 */
async function insist(
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

/** The connection or the session is to blame; clients heal both by themselves, so the call may be made again. */
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
