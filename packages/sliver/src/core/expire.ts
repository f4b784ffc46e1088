import type { State } from "./record.ts";

/** Without the records that ended before `now` (seconds), and without tickets that need not be remembered. */
export function expire(state: State, now: number): State {
  const ended = [...state.records.values()].filter(
    ({ expiresAt }) => expiresAt !== undefined && expiresAt < now,
  );
  const forgotten = [...state.usedTickets].filter(([, until]) => until < now);
  if (ended.length === 0 && forgotten.length === 0) return state;
  const records = new Map(state.records);
  for (const { name } of ended) records.delete(name);
  const usedTickets = new Map(state.usedTickets);
  for (const [jti] of forgotten) usedTickets.delete(jti);
  return { ...state, records, usedTickets };
}
