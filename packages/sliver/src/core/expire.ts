import type { State } from "./record.ts";
import { forgetTickets } from "./used-tickets.ts";

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
