import { createHash, timingSafeEqual } from "node:crypto";

/** The listener and the headers of a request that identify its caller. */
export interface Asking {
  /** Through the Unix socket, which only its owner can open. */
  readonly bySocket: boolean;
  /** Of the other end of a TCP connection. */
  readonly address: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/**
 * What the caller may see. `all`: everything. `public`: everything but what jobs and drivers wrote for themselves. `nothing`: it
 * has to show a token first.
 */
export type Visibility = "all" | "public" | "nothing";

/**
 * Without a token only the owner's socket and programs of this machine see everything. A page in a browser here is no such program:
 * it comes with an origin, or under a name that it made point here. Nor is what a proxy passes on.
 */
export function visibilityOf({ bySocket, address, headers }: Asking, token: string | undefined): Visibility {
  if (bySocket) return "all";
  if (token !== undefined) return bears(headers.authorization, token) ? "all" : "nothing";
  // A proxy on this machine connects from loopback for callers that are elsewhere.
  const passedOn = ["forwarded", "x-forwarded-for", "x-real-ip", "via"].some(
    (name) => headers[name] !== undefined,
  );
  const isHere = isLoopback(address ?? "") && isLoopback(hostIn(headers.host));
  // `Host` is compared because of DNS rebinding: a page may have made its own name point to loopback, and then has no foreign
  // origin.
  return isHere && !passedOn && headers.origin === undefined ? "all" : "public";
}

/** Addresses and names that cannot mean another machine. `::ffff:`: an IPv4 client of a socket that listens on IPv6. */
export function isLoopback(host: string): boolean {
  const address = host.replace(/^::ffff:/, "");
  return address === "localhost" || address === "::1" || /^127(\.\d{1,3}){3}$/.test(address);
}

/** The host of a header `Host`, without port and brackets; "": there is none. */
function hostIn(host: string | string[] | undefined): string {
  const text = typeof host === "string" ? host : "";
  return /^\[([^\]]*)\]/.exec(text)?.[1] ?? text.replace(/:\d*$/, "");
}

/** The token of `Authorization: Bearer` (RFC 6750 section 2.1); "": none. */
export function bearerOf(authorization: string | string[] | undefined): string {
  return /^bearer +(.+)$/i.exec(typeof authorization === "string" ? authorization : "")?.[1] ?? "";
}

/** Whether it is this token. Digests are compared, which are of one length whatever was sent. */
export function bears(authorization: string | string[] | undefined, token: string): boolean {
  return timingSafeEqual(digest(bearerOf(authorization)), digest(token));
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
