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
} from "../../operations/index.ts";
import { NotReady } from "../errors.ts";
import { bearerOf, bears } from "../http/caller.ts";
import type { AppParts, Known } from "../known.ts";
import { BY_SOCKET, byListener, byToken, tokenOf } from "./principal.ts";

/** A listener, and the credentials that it asks for. */
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
  /** Of its cookie. */
  readonly text: string;
  /** Tree time, milliseconds. */
  readonly expires: number;
  readonly claim: Claim;
}

/** What a request shows. */
export interface Shown {
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

const COOKIE = "nodeyard_session";
/** Browsers take it only by TLS, and from no other host of the domain (RFC 6265bis, "The __Host- Prefix"). */
const SECURE_COOKIE = `__Host-${COOKIE}`;
/** Of calls that change something. */
export const CSRF_HEADER = "x-nodeyard-csrf";

/** Decides which clients a listener admits, and with which rights. */
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
    if (token !== undefined && bears(headers.authorization, token)) return byListener(hashOf(token));
    const shown = bearerOf(headers.authorization);
    const name = tokenName(shown);
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
    return claim && { id, text, expires: Math.min(login.expires, claim.limit ?? login.expires), claim };
  }

  /** The right that who had this claim has now: a session ends with the token that it was opened by. */
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

  /** The header `Set-Cookie`. "" ends the cookie at once. */
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

/** Whether the call has what only the page of this session knows. */
export function isFromPage({ headers }: Shown, session: Session): boolean {
  return headers[CSRF_HEADER] === csrfOf(session.text);
}

/** "": there is none. */
function cookieIn(header: string | string[] | undefined, name: string): string {
  const pairs = typeof header === "string" ? header.split(";") : [];
  const found = pairs.map((pair) => pair.trim()).find((pair) => pair.startsWith(`${name}=`));
  return found?.slice(name.length + 1) ?? "";
}

/** Throws NotReady. */
export function demand(known: Known | undefined): Known {
  if (known === undefined) throw new NotReady("the tree has not been read yet; try again soon");
  return known;
}
