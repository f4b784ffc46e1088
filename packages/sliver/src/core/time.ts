import { TicketRefusedError } from "../errors.ts";
import type { State } from "./record.ts";

/** Wall time that a jump of the machine's clock does not move at once. All figures are milliseconds; `since` and `calm` are monotonic. */
export interface TrustedTime {
  /** Wall minus monotonic time, as last trusted. */
  readonly offset: number;
  /** Offset of the clock after a jump, and since when it has had it. */
  readonly suspect?: { readonly offset: number; readonly since: number };
  /** From when on slivers end by their age again. */
  readonly calm: number;
}

/** A larger jump is not trusted at once. */
const JUMP = 30_000;

/** So long the new time must last before it is trusted. It is counted by the monotonic clock: callers can cause any number of looks. */
const HOLD = 60_000;

/** After a jump that is trusted no sliver ends by its age for so long: an operator or NTP can still correct the clock. */
const GRACE = 600_000;

/** A daemon may have been stopped for so long and trust the clock at its start. */
const AWAY = 900_000;

/** The trusted time is stored again when it differs by so much, seconds. */
const STORED_AGAIN = 300;

/** At a start, by what was trusted before it. A store of an earlier version does not say. */
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

/** After one more look at both clocks. A forward jump past every expiry destroyed all slivers of the old manager. */
export function look(time: TrustedTime, wall: number, monotonic: number): TrustedTime {
  const offset = wall - monotonic;
  const { suspect } = time;
  if (Math.abs(offset - time.offset) <= JUMP) {
    // Infinity: the stored time of a start was right, and the clock has been corrected to it.
    return { offset, calm: time.calm === Number.POSITIVE_INFINITY ? monotonic : time.calm };
  }
  const same = suspect !== undefined && Math.abs(offset - suspect.offset) <= JUMP;
  const since = same ? suspect.since : monotonic;
  if (monotonic - since >= HOLD) return { offset, calm: monotonic + GRACE };
  return { ...time, suspect: { offset, since } };
}

/** Whether a sliver may end by its age: not while the clock is suspect, and not soon after a jump that was trusted. */
export function mayEnd({ suspect, calm }: TrustedTime, monotonic: number): boolean {
  return suspect === undefined && monotonic >= calm;
}

/** Monotonic time at which that clock changes by itself what it says; Infinity: it does not. */
export function nextLook({ suspect, calm }: TrustedTime, monotonic: number): number {
  if (suspect !== undefined) return suspect.since + HOLD;
  return calm > monotonic ? calm : Number.POSITIVE_INFINITY;
}

/** The state with `now` (seconds) as the trusted time; the same object when the stored one is recent enough. */
export function believe(state: State, now: number): State {
  return Math.abs(now - state.believed) < STORED_AGAIN ? state : { ...state, believed: Math.floor(now) };
}

/** Seconds since the Unix epoch, by the trusted clock. */
export function trustedSeconds(time: TrustedTime, monotonic: number): number {
  return (time.offset + monotonic) / 1000;
}

/** Monotonic time at which that clock will show these seconds. */
export function monotonicAt(time: TrustedTime, seconds: number): number {
  return seconds * 1000 - time.offset;
}

/** Tickets that are remembered; each is for 15 minutes at most. */
const MAX_USED_TICKETS = 10_000;

/** With the ticket `jti`, valid before `until`, used up. All times are seconds. Throws TicketRefusedError. */
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

/** Without those whose time is over, as the clock has it. It may be wrong: up to where they reach is kept. */
export function forgetTickets(state: State, now: number): State {
  const over = [...state.usedTickets].filter(([, until]) => until < now);
  if (over.length === 0) return state;
  const usedTickets = new Map([...state.usedTickets].filter(([, until]) => until >= now));
  const ticketsForgotten = Math.max(state.ticketsForgotten, ...over.map(([, until]) => until));
  return { ...state, usedTickets, ticketsForgotten };
}

/** Without the records that ended before `now` (seconds). */
export function expire(state: State, now: number): State {
  const ended = [...state.records.values()].filter(
    ({ expiresAt }) => expiresAt !== undefined && expiresAt < now,
  );
  if (ended.length === 0) return state;
  const records = new Map(state.records);
  for (const { name } of ended) records.delete(name);
  return { ...state, records };
}

/** The next second after `now` after which a record or a loan is over; Infinity when none ends. */
export function nextEnd({ records }: State, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { expiresAt, local } of records.values())
    for (const end of [expiresAt, ...local.loans.map(({ until }) => until)])
      if (end !== undefined && end >= now) next = Math.min(next, end);
  return next;
}
