import { TicketRefusedError } from "../errors.ts";
import type { State } from "./record.ts";

/** Wall time that a jump of the machine's clock does not move at once. All figures are milliseconds. */
export interface TrustedTime {
  /** Wall minus monotonic time, as last trusted. */
  readonly offset: number;
  /** Offset of the clock after a jump, and how many syncs in a row agreed on it. */
  readonly suspect?: { readonly offset: number; readonly agreed: number };
}

/** A larger jump is not trusted at once. */
const JUMP = 30_000;

/** Syncs that must agree before the new time is trusted. */
const AGREEING = 3;

/** Trusts both clocks as they are at the start. Both times are milliseconds. */
export function trustFirst(wall: number, monotonic: number): TrustedTime {
  return { offset: wall - monotonic };
}

/** After one more look at both clocks. A forward jump past every expiry destroyed all slivers of the old manager. */
export function look(time: TrustedTime, wall: number, monotonic: number): TrustedTime {
  const offset = wall - monotonic;
  if (Math.abs(offset - time.offset) <= JUMP) return { offset };
  const same = time.suspect !== undefined && Math.abs(offset - time.suspect.offset) <= JUMP;
  const agreed = same ? time.suspect!.agreed + 1 : 1;
  return agreed >= AGREEING ? { offset } : { offset: time.offset, suspect: { offset, agreed } };
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

/** Without the records that ended before `now` (seconds), and without tickets that need not be remembered. */
export function expire(before: State, now: number): State {
  const state = forgetTickets(before, now);
  const ended = [...state.records.values()].filter(
    ({ expiresAt }) => expiresAt !== undefined && expiresAt < now,
  );
  if (ended.length === 0) return state;
  const records = new Map(state.records);
  for (const { name } of ended) records.delete(name);
  return { ...state, records };
}

/** The next second after which a record or a loan is over, when `now` is seen to; Infinity when none ends. */
export function nextEnd({ records }: State, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  for (const { expiresAt, local } of records.values())
    for (const end of [expiresAt, ...local.loans.map(({ until }) => until)])
      if (end !== undefined && end >= now) next = Math.min(next, end);
  return next;
}
