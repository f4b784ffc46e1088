import { TicketRefusedError } from "../errors.ts";
import type { State } from "./record.ts";

/**
 * Wall time that does not follow a jump of the machine's clock at once. Milliseconds; `since` and `calm` are monotonic. The wall clock
 * decides when slivers end, and a wrong one, as after a reboot without NTP, would end all of them.
 */
export interface TrustedTime {
  /** Wall time minus monotonic time, at the last trusted look. */
  readonly offset: number;
  /** After a jump: the new offset, and since when the clock has had it. */
  readonly suspect?: { readonly offset: number; readonly since: number };
  /** Monotonic time from which slivers may expire again. */
  readonly calm: number;
}

/** A larger jump is not trusted at once. */
const JUMP = 30_000;

/**
 * How long the new time must last before it is trusted. Counted by the monotonic clock and not in looks, because callers can cause any
 * number of looks.
 */
const HOLD = 60_000;

/** After a trusted jump no sliver expires for this long, so that an operator or NTP can correct the clock. */
const GRACE = 600_000;

/** At its start a daemon trusts the clock when the stored time is at most this old. */
const AWAY = 900_000;

/** The trusted time is stored again when it differs by this much, seconds. */
const STORED_AGAIN = 300;

/** The trusted time at a start, by the stored one. A store of an earlier version contains none. */
export function trustFirst(wall: number, monotonic: number, { believed, records }: State): TrustedTime {
  const offset = wall - monotonic;
  if (believed === 0) return { offset, calm: records.size === 0 ? monotonic : monotonic + GRACE };
  const away = wall - believed * 1000;
  if (away >= -JUMP && away <= AWAY) return { offset, calm: monotonic };
  return {
    offset: believed * 1000 - monotonic,
    suspect: { offset, since: monotonic },
    calm: Number.POSITIVE_INFINITY,
  };
}

/** The trusted time after a look at both clocks. In the old manager a forward jump past every expiry destroyed all slivers. */
export function look(time: TrustedTime, wall: number, monotonic: number): TrustedTime {
  const offset = wall - monotonic;
  const { suspect } = time;
  if (Math.abs(offset - time.offset) <= JUMP) {
    // Infinity: the stored time was right at the start, and the clock has been corrected to it.
    return { offset, calm: time.calm === Number.POSITIVE_INFINITY ? monotonic : time.calm };
  }
  const same = suspect !== undefined && Math.abs(offset - suspect.offset) <= JUMP;
  const since = same ? suspect.since : monotonic;
  if (monotonic - since >= HOLD) return { offset, calm: monotonic + GRACE };
  return { ...time, suspect: { offset, since } };
}

/** Whether slivers may expire: not while the clock is suspect, and not soon after a trusted jump. */
export function mayEnd({ suspect, calm }: TrustedTime, monotonic: number): boolean {
  return suspect === undefined && monotonic >= calm;
}

/** Monotonic time of the next look that can change the result; Infinity: none. */
export function nextLook({ suspect, calm }: TrustedTime, monotonic: number): number {
  if (suspect !== undefined) return suspect.since + HOLD;
  return calm > monotonic ? calm : Number.POSITIVE_INFINITY;
}

/** The state with `now` (seconds) as the trusted time. Returns the same object when the stored time is recent enough. */
export function believe(state: State, now: number): State {
  return Math.abs(now - state.believed) < STORED_AGAIN ? state : { ...state, believed: Math.floor(now) };
}

/** Seconds since the Unix epoch, by the trusted clock. */
export function trustedSeconds(time: TrustedTime, monotonic: number): number {
  return (time.offset + monotonic) / 1000;
}

/** Monotonic time at which the trusted clock shows these seconds. */
export function monotonicAt(time: TrustedTime, seconds: number): number {
  return seconds * 1000 - time.offset;
}

/** Most tickets to remember. Each is valid for at most 15 minutes. */
const MAX_USED_TICKETS = 10_000;

/** Marks the ticket `jti`, valid before `until`, as used. Times are seconds. Throws TicketRefusedError. */
export function useTicket(before: State, jti: string, until: number, now: number): State {
  const state = forgetTickets(before, now);
  const { usedTickets, ticketsForgotten } = state;
  if (usedTickets.has(jti)) throw new TicketRefusedError("the ticket has been used");
  if (until <= ticketsForgotten)
    throw new TicketRefusedError(
      `the ticket ends within ${Math.ceil(until - now)} s; this node's clock was ahead, so it cannot know which tickets that end within ${Math.ceil(ticketsForgotten - now)} s were used: ask the launcher for one that ends later`,
    );
  if (usedTickets.size >= MAX_USED_TICKETS)
    throw new TicketRefusedError("too many tickets within a quarter of an hour");
  return { ...state, usedTickets: new Map([...usedTickets, [jti, until]]) };
}

/** Forgets expired tickets. Because the clock may be wrong, it records up to which second forgotten tickets were valid. */
export function forgetTickets(state: State, now: number): State {
  const over = [...state.usedTickets].filter(([, until]) => until < now);
  if (over.length === 0) return state;
  const usedTickets = new Map([...state.usedTickets].filter(([, until]) => until >= now));
  const ticketsForgotten = Math.max(state.ticketsForgotten, ...over.map(([, until]) => until));
  return { ...state, usedTickets, ticketsForgotten };
}

/** Removes records that ended before `now` (seconds). */
export function expire(state: State, now: number): State {
  const ended = [...state.records.values()].filter(
    ({ expiresAt }) => expiresAt !== undefined && expiresAt < now,
  );
  if (ended.length === 0) return state;
  const records = new Map(state.records);
  for (const { name } of ended) records.delete(name);
  return { ...state, records };
}

/** The next second after `now` at which a record or loan ends; Infinity when none does. */
export function nextEnd({ records }: State, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { expiresAt, local } of records.values())
    for (const end of [expiresAt, ...local.loans.map(({ until }) => until)])
      if (end !== undefined && end >= now) next = Math.min(next, end);
  return next;
}
