import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { SignatureError } from "./errors.ts";
import { type KeySet, keyAt, whyNoKey } from "./key-set.ts";

/** Purpose of a signed text. The signature covers it, so that a text cannot be used for another purpose. */
type Purpose = "document" | "ticket" | "key-set";

/** A private key, and the id by which nodes know the public key. */
export interface Signer {
  readonly kid: string;
  /** Ed25519. */
  readonly privateKey: KeyObject;
}

/** Largest signed text in bytes. */
const MAX_SIGNED = 8 * 1024 * 1024;

/**
 * Signs claims as a compact JWS (RFC 7515) with EdDSA (RFC 8037). No JOSE library is used: their main work is to support many algorithms
 * and formats, and here exactly one must be accepted.
 */
export function signText(purpose: Purpose, claims: unknown, signer: Signer): string {
  const header = { alg: "EdDSA", typ: typeOf(purpose), kid: signer.kid };
  const head = `${encode(JSON.stringify(header))}.${encode(JSON.stringify(claims))}`;
  return `${head}.${sign(null, Buffer.from(head), signer.privateKey).toString("base64url")}`;
}

/** Returns the claims if a key of the set that is valid at `now` (seconds) signed them for `purpose`. Throws SignatureError. */
export function verifyText(purpose: Purpose, text: string, keys: KeySet, now: number): unknown {
  if (text.length > MAX_SIGNED) throw new SignatureError(`signed text of ${text.length} bytes is too long`);
  const parts = text.split(".");
  if (parts.length !== 3) throw new SignatureError("not a signed text: it does not have three parts");
  const header = json(parts[0]!);
  const { alg, typ, kid } = (header ?? {}) as Record<string, unknown>;
  if (alg !== "EdDSA") throw new SignatureError(`algorithm ${JSON.stringify(alg)} is not EdDSA`);
  if (typ !== typeOf(purpose))
    throw new SignatureError(`signed as ${JSON.stringify(typ)}, where a ${purpose} is wanted`);
  if (typeof kid !== "string") throw new SignatureError("the signature names no key");
  // RFC 7515 4.1.11: a verifier must refuse critical extensions that it does not support. This one supports none.
  if (Object.hasOwn(header as object, "crit")) throw new SignatureError("critical header extensions");
  const key = keyAt(keys, kid, now);
  if (key === undefined)
    throw new SignatureError(
      `no key ${JSON.stringify(kid)} is valid now (${whyNoKey(keys, kid, now)}); is the node's key set up to date?`,
    );
  if (!verify(null, Buffer.from(`${parts[0]}.${parts[1]}`), publicKey(key.x), decode(parts[2]!)))
    throw new SignatureError(`the signature by ${JSON.stringify(kid)} is wrong`);
  return json(parts[1]!);
}

/** Converts a raw Ed25519 public key (32 bytes, base64url) for the crypto module. */
export function publicKey(x: string): KeyObject {
  return createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x }, format: "jwk" });
}

/** The raw public key (32 bytes, base64url) of a private key. */
export function rawPublicKey(privateKey: KeyObject): string {
  return createPublicKey(privateKey).export({ format: "jwk" }).x!;
}

/** Makes a signer from PKCS #8 PEM. */
export function signerFromPem(kid: string, pem: string): Signer {
  const privateKey = createPrivateKey(pem);
  if (privateKey.asymmetricKeyType !== "ed25519")
    throw new SignatureError(`key ${kid} is ${privateKey.asymmetricKeyType}, not ed25519`);
  return { kid, privateKey };
}

function typeOf(purpose: Purpose): string {
  return `nodeyard-sliver-${purpose}+jws`;
}

function encode(text: string): string {
  return Buffer.from(text).toString("base64url");
}

/** Accepts only the canonical base64url form, so that a signed text has only one spelling. */
function decode(part: string): Buffer {
  const bytes = Buffer.from(part, "base64url");
  if (bytes.toString("base64url") !== part) throw new SignatureError("not a signed text: bad base64url");
  return bytes;
}

function json(part: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(decode(part)));
  } catch (error) {
    if (error instanceof SignatureError) throw error;
    throw new SignatureError("not a signed text: no JSON inside");
  }
}
