import { z } from "zod";
import { parse, parseSliver, type SliverSpec } from "./document.ts";
import { TicketError } from "./errors.ts";
import { NODE_ID } from "./grammar.ts";
import type { KeySet } from "./key-set.ts";
import { verifyText } from "./signed.ts";

const seconds = z.number().int().min(0);

const schema = z.strictObject({
  /** Installation that issued it. */
  iss: z.string().min(1).max(128),
  /** The one node where it counts. */
  aud: z.string().regex(NODE_ID),
  iat: seconds,
  nbf: seconds,
  exp: seconds,
  /** Used once. */
  jti: z.string().regex(/^[A-Za-z0-9_-]{16,64}$/),
  epoch: seconds,
  /** Of the document that the issuer knew: the node refuses it when its own is newer. */
  version: seconds,
  sliver: z.unknown(),
});

/** Lets its bearer create one generation of one sliver on one node, once, within minutes. */
export interface SliverTicket extends Omit<z.output<typeof schema>, "sliver"> {
  readonly sliver: SliverSpec;
}

/** Clocks of launcher and node may differ by this, seconds. */
export const CLOCK_TOLERANCE = 30;

/** Longest life of a ticket, seconds: `jti`s are remembered that long. */
const MAX_TICKET_LIFE = 900;

/** The ticket in `text`, when it is for this node and for now (seconds). Throws SignatureError, GrammarError, TicketError. */
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
