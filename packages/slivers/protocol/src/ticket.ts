import { z } from "zod";
import { parse, parseSliver, type SliverSpec } from "./document.ts";
import { TicketError } from "./errors.ts";
import { NODE_ID } from "./grammar.ts";
import type { KeySet } from "./key-set.ts";
import { verifyText } from "./signed.ts";

const seconds = z.number().int().min(0);

const schema = z.strictObject({
  /** Installation that issued the ticket. */
  iss: z.string().min(1).max(128),
  /** The only node that accepts it. */
  aud: z.string().regex(NODE_ID),
  iat: seconds,
  nbf: seconds,
  exp: seconds,
  /** Id of the ticket; each is accepted once. */
  jti: z.string().regex(/^[A-Za-z0-9_-]{16,64}$/),
  epoch: seconds,
  /** Version of the document that the issuer knew. A node with a newer document refuses the ticket. */
  version: seconds,
  sliver: z.unknown(),
});

/** A ticket: the right of its holder to create one generation of one sliver on one node, once, within minutes. */
export interface SliverTicket extends Omit<z.output<typeof schema>, "sliver"> {
  readonly sliver: SliverSpec;
}

/** Most seconds that the clocks of launcher and node may differ. */
export const CLOCK_TOLERANCE = 30;

/** Longest validity of a ticket in seconds. Nodes remember each `jti` for that long. */
const MAX_TICKET_LIFE = 900;

/** Checks the ticket in `text` for this node and for `now` (seconds). Throws SignatureError, GrammarError, TicketError. */
export function openTicket(text: string, keys: KeySet, node: string, now: number): SliverTicket {
  const claims = parse(schema, verifyText("ticket", text, keys, now), "ticket");
  if (claims.aud !== node) throw new TicketError(`the ticket is for node ${claims.aud}, this is ${node}`);
  if (claims.exp - claims.nbf > MAX_TICKET_LIFE || claims.exp <= claims.nbf)
    throw new TicketError(
      `the ticket is valid for ${claims.exp - claims.nbf} s; 1 to ${MAX_TICKET_LIFE} are allowed`,
    );
  if (now + CLOCK_TOLERANCE < claims.nbf)
    throw new TicketError(`the ticket becomes valid in ${claims.nbf - now} s`);
  if (now - CLOCK_TOLERANCE >= claims.exp)
    throw new TicketError(`the ticket expired ${now - claims.exp} s ago; ask the launcher for a new one`);
  return { ...claims, sliver: parseSliver(claims.sliver) };
}
