import { TicketRefusedError } from "../errors.ts";
import type { State } from "./record.ts";

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
