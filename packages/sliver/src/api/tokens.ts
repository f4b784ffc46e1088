import { createHash, timingSafeEqual } from "node:crypto";
import type { Caller } from "../core/index.ts";

/** A token that lets a caller in over TCP. Only its digest is kept. */
export interface TokenAccount {
  /** SHA-256 of the token, hexadecimal. */
  readonly sha256: string;
  /** undefined when whoever it was made for is no more. */
  readonly caller: () => Caller | undefined;
}

export const ANONYMOUS: Caller = { account: "anonymous", role: "anonymous", generation: 0 };

/** Who shows this `Authorization` header; nobody in particular when it is absent or wrong. */
export function callerOfToken(tokens: readonly TokenAccount[], authorization: string | undefined): Caller {
  const token = /^Bearer ([\x21-\x7e]{1,256})$/.exec(authorization ?? "")?.[1];
  if (token === undefined) return ANONYMOUS;
  const shown = createHash("sha256").update(token).digest();
  const known = tokens.find(({ sha256 }) => {
    const wanted = Buffer.from(sha256, "hex");
    return wanted.length === shown.length && timingSafeEqual(wanted, shown);
  });
  return known?.caller() ?? ANONYMOUS;
}
