import { exceeded } from "@nodeyard/driver";
import {
  backingData,
  type NodeRecord,
  type NodeUser,
  type RequestRecord,
  type ReuseNote,
  returnedOf,
  reuseOf,
  userOf,
} from "@nodeyard/model";
import { type NodeEntry, poolKey } from "@nodeyard/view";
import { offeringOf, withoutRoom } from "./gates.ts";
import type { Blocked, PoolState } from "./pool-state.ts";
import { sharerOf } from "./shares.ts";
import type { State, Turn } from "./state.ts";
import type { LocalReuse } from "./types.ts";
import { quotaOf, usedOfPool, usedOfProvider } from "./used.ts";
import { labelLine, type Waiting } from "./waits.ts";

/** Nodes of a pool that this launcher does not serve are left to one that does for so long after they were given back, milliseconds. */
export const OTHERS_CHECK_MS = 60_000;
/** And for so long after they became free. By then that has deleted them, unless nobody serves the pool any more. */
const OTHERS_FREE_MS = 86_400_000;

/** Whether a launcher that serves the pool of a node that was given back may have it checked; this one does not. */
export function isOthersToCheck({ pools }: State, record: NodeRecord): boolean {
  const isOthers = record.state === "used" && !pools.has(poolKey(record.provider, record.pool));
  return isOthers && reuseOf(record) !== undefined;
}

/**
 * Whether a request may have a free node: one that is kept for the user that had it goes to nobody else, and one that was kept for nobody only
 * where its label still says that everybody may have it (`forAll`). Asked again under its lock.
 */
export function mayHave(
  record: Pick<NodeRecord, "driverData">,
  request: RequestRecord,
  forAll: boolean,
): boolean {
  const note = reuseOf(record);
  if (note === undefined || note.times === 0) return true;
  return note.only === null ? forAll : isUser(note.only, request);
}

function isUser({ tenant, client }: NodeUser, request: RequestRecord): boolean {
  return tenant === request.tenantName && client === sharerOf(request).client;
}

/** Also by another launcher, to be woken, or to be suspended; not one that is checked. */
export function isBeingMade(record: NodeRecord): boolean {
  return record.state === "init" || (record.state === "building" && reuseOf(record)?.checking !== true);
}

/**
 * Why a node that was given back is deleted; undefined: it is checked, and used again if it passes. What is not certain speaks against it: then
 * it ends as a node of any other label does.
 */
export function notUsedAgain(state: State, turn: Turn, { record }: NodeEntry): string | undefined {
  const pool = state.pools.get(poolKey(record.provider, record.pool));
  const policy = policyOf(pool, record);
  if (pool === undefined || policy === undefined || pool.policy.unavailable.has(record.type[0]!))
    return "used";
  const note = reuseOf(record);
  const why =
    note === undefined
      ? "it was launched before its label said so"
      : (outlived(policy, note, lifeMs(state, policy, record), turn.now) ??
        unfit(record) ??
        inTheWay(state, pool, policy, record));
  if (why !== undefined) return `used, and not used again: ${why}`;
  return state.agesTrusted ? undefined : "used, and its age is in doubt";
}

/** What the label of a node says of being used again; undefined: nothing. */
function policyOf(pool: PoolState | undefined, { type }: NodeRecord): LocalReuse | undefined {
  const [label = "", ...others] = type;
  return pool?.policy.launches === true && others.length === 0 ? pool.policy.reuse?.get(label) : undefined;
}

/** How long a node is used, milliseconds from when it was ready for the first time. */
function lifeMs({ policy }: State, { forMs }: LocalReuse, { type }: NodeRecord): number {
  return Math.min(forMs, policy.labels.get(type[0]!)?.maxReadyAgeMs ?? Number.POSITIVE_INFINITY);
}

/** Why a node is beyond what its label allows, whoever had it. `now`: tree time, milliseconds. */
function outlived(policy: LocalReuse, note: ReuseNote, life: number, now: number): string | undefined {
  if (note.settings !== policy.settings) return "the settings of its label have changed";
  if (note.times >= policy.times) return `it was used again ${note.times} times`;
  return now - note.since * 1000 >= life ? "it is too old" : undefined;
}

/** Why a node must not be used again after its last user. */
function unfit(record: NodeRecord): string | undefined {
  // Dirty, or of a lease that expired; its user may also have said nothing.
  if (returnedOf(record) === undefined) return "it was not given back as good";
  // Zuul remembers the nodes of an autohold by their ids, and ends the hold by writing to them.
  if (record.holdJob !== null || record.holdExpiration !== null || record.comment !== null)
    return "it was on hold, or has a comment";
  return backingData(record) === undefined ? undefined : "it carried slots";
}

/** Why there is no use for the node, or no room. */
function inTheWay(
  state: State,
  pool: PoolState,
  { forAll }: LocalReuse,
  record: NodeRecord,
): string | undefined {
  const user = userOf(record);
  if (!forAll && user === undefined) return "it is not known who had it";
  const isFor = (waiting: Waiting) =>
    waiting.record.nodeTypes.includes(record.type[0]!) &&
    (forAll || isUser(user!, waiting.record)) &&
    (pool.queue.has(waiting) ||
      state.waits.has("label", labelLine(pool.policy.key, record.type[0]!), waiting));
  // Deleted, it makes room at once: for the heads of this pool, and of others that lack room in the same provider.
  for (const other of state.pools.values()) {
    const { policy, blocked } = other;
    if (blocked === undefined || policy.provider !== pool.policy.provider || isFor(blocked.waiting)) continue;
    if (other !== pool && blocked.scopes.has("pool")) continue;
    if (blocked.missing > leavingFor(state, other, blocked)) return `it makes room for ${blocked.id}`;
  }
  // Or in the cloud, for the request that tries there next.
  const offering = offeringOf(state, record, record.type[0]!);
  const next = withoutRoom(state, offering) && state.waits.line("gate", offering).at(0);
  const wanted = next === undefined || isFor(next) ? 0 : next.record.nodeTypes.length;
  if (wanted > state.leaving.count(pool.policy.key)) return `it makes room for ${next!.id}`;
  const over =
    exceeded(pool.policy.limits, {}, usedOfPool(state, pool.policy)) ??
    exceeded(quotaOf(state, pool.policy), {}, usedOfProvider(state, pool.policy.provider));
  return over === undefined ? undefined : `more of ${over} is used than the limit`;
}

/** How many nodes are being deleted already whose room a blocked head may have. */
export function leavingFor(state: State, { policy }: PoolState, { scopes }: Blocked): number {
  if (scopes.has("pool")) return state.leaving.count(policy.key);
  let count = 0;
  for (const other of state.pools.values())
    if (other.policy.provider === policy.provider) count += state.leaving.count(other.policy.key);
  return count;
}

/** How long a free node may stay that was used before, milliseconds from when it became free; Infinity: as long as any other. */
export function freeForMs(state: State, record: NodeRecord): number {
  const note = reuseOf(record);
  if (note === undefined || note.times === 0) return Number.POSITIVE_INFINITY;
  const pool = state.pools.get(poolKey(record.provider, record.pool));
  if (pool === undefined) return OTHERS_FREE_MS;
  const policy = policyOf(pool, record);
  if (policy === undefined || policy.settings !== note.settings || note.times > policy.times) return 0;
  // It was for everybody when it was checked.
  if (note.only === null && !policy.forAll) return 0;
  const freeSince = (record.stateTime ?? 0) * 1000;
  return Math.min(policy.idleMs, Math.max(0, note.since * 1000 + lifeMs(state, policy, record) - freeSince));
}
