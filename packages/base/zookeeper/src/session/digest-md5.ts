/** The client's side of SASL DIGEST-MD5 (RFC 2831), as far as ZooKeeper servers use it: qop "auth", no layer. */
import { createHash } from "node:crypto";
import { AuthFailed } from "../errors.ts";
import type { Credentials } from "../types.ts";

/** ZooKeeper clients use this fixed service name, whatever the name of the host is. */
const DIGEST_URI = "zookeeper/zk-sasl-md5";
/** Count of uses of the nonce (`nc`): one, because each connection begins a new exchange. */
const FIRST_USE = "00000001";
/** `name=value`, the value quoted or not, up to the next comma. */
const PAIR = /\s*([a-zA-Z0-9-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^",\s]*))\s*(?:,|$)/y;

export interface Answer {
  readonly token: string;
  /** The proof that the server must answer with; only a server that knows the password can compute it. */
  readonly serverProof: string;
}

/** Answers a server's challenge. `cnonce` must be unpredictable and new for each call. Throws AuthFailed for an unsupported challenge. */
export function answerChallenge(challenge: string, credentials: Credentials, cnonce: string): Answer {
  const asked = parseDirectives(challenge);
  const nonce = asked.get("nonce");
  if (nonce === undefined) throw new AuthFailed("the server's DIGEST-MD5 challenge has no nonce");
  const offered = (asked.get("qop") ?? "auth").split(",").map((one) => one.trim());
  if (!offered.includes("auth")) {
    throw new AuthFailed(
      `the server wants the DIGEST-MD5 quality ${offered.join(" or ")}, only "auth" is supported`,
    );
  }
  const realm = asked.get("realm") ?? "";
  // As raw bytes in A1, not as hexadecimal digits (RFC 2831, 2.1.2.1).
  const secret = md5(`${credentials.username}:${realm}:${credentials.password}`);
  const a1 = md5(Buffer.concat([secret, Buffer.from(`:${nonce}:${cnonce}`)])).toString("hex");
  // The same formula for both sides; only A2 differs.
  const proof = (a2: string) => {
    const hashed = md5(a2).toString("hex");
    return md5(`${a1}:${nonce}:${FIRST_USE}:${cnonce}:auth:${hashed}`).toString("hex");
  };
  const fields = [
    "charset=utf-8",
    `username=${quote(credentials.username)}`,
    `realm=${quote(realm)}`,
    `nonce=${quote(nonce)}`,
    `nc=${FIRST_USE}`,
    `cnonce=${quote(cnonce)}`,
    `digest-uri=${quote(DIGEST_URI)}`,
    "maxbuf=65536",
    `response=${proof(`AUTHENTICATE:${DIGEST_URI}`)}`,
    "qop=auth",
  ];
  return { token: fields.join(","), serverProof: `rspauth=${proof(`:${DIGEST_URI}`)}` };
}

/** Names in lower case. Of a name that occurs twice the last value counts. Throws AuthFailed. */
function parseDirectives(text: string): Map<string, string> {
  const found = new Map<string, string>();
  PAIR.lastIndex = 0;
  while (PAIR.lastIndex < text.length) {
    const match = PAIR.exec(text);
    if (match === null) throw new AuthFailed("the server's DIGEST-MD5 challenge is malformed");
    found.set(match[1]!.toLowerCase(), match[2]?.replace(/\\(.)/g, "$1") ?? match[3] ?? "");
  }
  return found;
}

function quote(text: string): string {
  return `"${text.replace(/["\\]/g, "\\$&")}"`;
}

function md5(data: string | Buffer): Buffer {
  return createHash("md5").update(data).digest();
}
