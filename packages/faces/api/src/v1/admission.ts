import type { SecureContextOptions } from "node:tls";
import { type Claim, loginPath, tokenPath } from "@nodeyard/model";
import {
  checkLogin,
  checkToken,
  csrfOf,
  hashOf,
  loginId,
  tokenName,
  treeNow,
  validToken,
} from "@nodeyard/operations";
import { NotReady } from "../errors.ts";
import { bearerOf, bears } from "../http/caller.ts";
import type { AppParts, Known } from "../known.ts";
import { BY_SOCKET, byListener, byToken, tokenOf } from "./principal.ts";

/** A listener, and the credentials that it asks for. Made by `HttpApi.listen`. */
export interface Door {
  /** A Unix socket of the process's own user. */
  readonly bySocket: boolean;
  /** The token that clients must present; undefined: none. */
  readonly token?: string;
  readonly tls?: SecureContextOptions;
}

/** The session of a browser. */
export interface Session {
  readonly id: string;
  /** The value of its cookie, which holds the secret. */
  readonly text: string;
  /** Tree time, milliseconds. */
  readonly expires: number;
  readonly claim: Claim;
}

/** What a request shows of its caller. */
export interface Shown {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

const COOKIE = "nodeyard_session";
/** Browsers take it only by TLS, and from no other host of the domain (RFC 6265bis, "The __Host- Prefix"). */
const SECURE_COOKIE = `__Host-${COOKIE}`;
/** The header that calls which change something by cookie need (docs/design/rights.md, "Decision"). */
export const CSRF_HEADER = "x-nodeyard-csrf";

/**
 * Decides which clients a listener admits, and with which rights: from the listener, the headers, and the records of tokens and
 * logins in the view. One for each listener; called for each request, and by streams again. It keeps nothing, so a revocation
 * counts at once.
 */
export class Admission {
  readonly #parts: AppParts;
  readonly #door: Door;

  constructor(parts: AppParts, door: Door) {
    this.#parts = parts;
    this.#door = door;
  }

  /**
   * Who calls, by the listener or by a token. A cookie counts only where nothing else is shown: a page of another site cannot send a token.
   * Rejects with NotReady while tokens are not known yet, with ApiError and IssuerAway for a JSON Web Token that is refused.
   */
  async claim({ headers }: Shown): Promise<Claim | undefined> {
    const { bySocket, token } = this.#door;
    if (bySocket) return BY_SOCKET;
    // The listener's own token first: it is needed where the tree was not read yet.
    if (token !== undefined && bears(headers.authorization, token)) return byListener(hashOf(token));
    const shown = bearerOf(headers.authorization);
    const name = tokenName(shown);
    // No text of a token of ours is a JSON Web Token, or the other way round.
    if (name === undefined) return this.#parts.issuers.claim(shown);
    const { view, handles } = demand(this.#parts.sources.known());
    const good = checkToken(shown, view.own.get(tokenPath(name))?.data, treeNow(handles));
    return good && byToken(good);
  }

  /** The session that the cookie names, if it is good. Throws NotReady while sessions are not known yet. */
  session({ headers }: Shown): Session | undefined {
    const text = cookieIn(headers.cookie, this.#isSecure(headers) ? SECURE_COOKIE : COOKIE);
    const id = loginId(text);
    if (id === undefined) return undefined;
    const { view, handles } = demand(this.#parts.sources.known());
    const login = checkLogin(text, "session", view.own.get(loginPath(id))?.data, treeNow(handles));
    const claim = login && this.standing(login);
    // A session may outlive its token otherwise.
    return claim && { id, text, expires: Math.min(login.expires, claim.limit ?? login.expires), claim };
  }

  /**
   * The right that the holder of this claim has now; undefined: none any more. A session ends with the token that it was opened
   * by, and a token whose name was given again is another one: the hash tells.
   */
  standing(claim: Claim): Claim | undefined {
    const { view, handles } = demand(this.#parts.sources.known());
    switch (claim.origin) {
      case "socket":
        return claim;
      case "listener": {
        const { token } = this.#door;
        return token !== undefined && hashOf(token) === claim.credential ? claim : undefined;
      }
      case "token": {
        const name = tokenOf(claim);
        const token = validToken(name, view.own.get(tokenPath(name))?.data, treeNow(handles));
        return token?.hash === claim.credential ? byToken(token) : undefined;
      }
      case "issuer":
        return this.#parts.issuers.knows(claim) && claim.limit! > treeNow(handles) ? claim : undefined;
    }
  }

  /** The header `Set-Cookie` for `forMs` milliseconds. "" ends the cookie at once. */
  cookie({ headers }: Shown, text: string, forMs: number): string {
    const secure = this.#isSecure(headers);
    const end = text === "" ? 0 : Math.max(1, Math.floor(forMs / 1_000));
    const name = secure ? SECURE_COOKIE : COOKIE;
    return `${name}=${text}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${end}${secure ? "; Secure" : ""}`;
  }

  /** By TLS, as the proxy in front may say. Who lies has a cookie of another name, and nothing else. */
  #isSecure(headers: Shown["headers"]): boolean {
    return this.#door.tls !== undefined || headers["x-forwarded-proto"] === "https";
  }
}

/**
 * Whether the call has what only the page of this session knows: other sites can make a browser send the cookie, but not read an
 * answer.
 */
export function isFromPage({ headers }: Shown, session: Session): boolean {
  return headers[CSRF_HEADER] === csrfOf(session.text);
}

/**
 * The value of a cookie; "": there is none. The first of that name counts, as browsers send the most specific first (RFC 6265
 * section 5.4).
 */
function cookieIn(header: string | string[] | undefined, name: string): string {
  const pairs = typeof header === "string" ? header.split(";") : [];
  const found = pairs.map((pair) => pair.trim()).find((pair) => pair.startsWith(`${name}=`));
  return found?.slice(name.length + 1) ?? "";
}

/** What the process knows. Throws NotReady before the tree was read. */
export function demand(known: Known | undefined): Known {
  if (known === undefined) throw new NotReady("the tree has not been read yet; try again soon");
  return known;
}
