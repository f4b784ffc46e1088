import { createPublicKey, type JsonWebKey, type KeyObject, verify } from "node:crypto";
import { HostKeyProofError, ScanProtocolError } from "../errors.ts";
import { Fields, padded, withoutLeadingZeroes } from "./bytes.ts";

/** A type of host keys. A handshake shows one key, which may serve several signature algorithms. */
export interface KeyType {
  /** The name in the key itself and in `known_hosts`. */
  readonly name: string;
  /** Signature algorithms for keys of this type, the preferred one first. */
  readonly algorithms: readonly string[];
}

/** In the order in which keys are reported. Certificates and hardware keys are left out: they show the same keys again, or none. */
export const KEY_TYPES: readonly KeyType[] = [
  { name: "ssh-ed25519", algorithms: ["ssh-ed25519"] },
  { name: "ecdsa-sha2-nistp256", algorithms: ["ecdsa-sha2-nistp256"] },
  { name: "ecdsa-sha2-nistp384", algorithms: ["ecdsa-sha2-nistp384"] },
  { name: "ecdsa-sha2-nistp521", algorithms: ["ecdsa-sha2-nistp521"] },
  { name: "ssh-rsa", algorithms: ["rsa-sha2-512", "rsa-sha2-256", "ssh-rsa"] },
];

/** The types of keys that a server with these host key algorithms has. */
export function keyTypesOf(algorithms: readonly string[]): readonly KeyType[] {
  return KEY_TYPES.filter((type) => type.algorithms.some((name) => algorithms.includes(name)));
}

/** A curve in SSH's name, in the name of JSON Web Keys, with the bytes of a coordinate and the hash of its signatures (RFC 5656, 6.2.1). */
interface Curve {
  readonly id: string;
  readonly jwk: string;
  readonly bytes: number;
  readonly hash: string;
}

const CURVES: Readonly<Record<string, Curve>> = {
  "ecdsa-sha2-nistp256": { id: "nistp256", jwk: "P-256", bytes: 32, hash: "sha256" },
  "ecdsa-sha2-nistp384": { id: "nistp384", jwk: "P-384", bytes: 48, hash: "sha384" },
  "ecdsa-sha2-nistp521": { id: "nistp521", jwk: "P-521", bytes: 66, hash: "sha512" },
};

/** Hashes of RSA signatures (RFC 8332; SHA-1 by RFC 4253, 6.6, for servers that have nothing newer). */
const RSA_HASHES: Readonly<Record<string, string>> = {
  "rsa-sha2-512": "sha512",
  "rsa-sha2-256": "sha256",
  "ssh-rsa": "sha1",
};

/**
 * Checks that the server signed `exchangeHash` with the key that it shows. Without this check anyone on the network path could show a
 * key of another server. Throws HostKeyProofError, or ScanProtocolError when the bytes are no key of `type`.
 */
export function checkProof(type: KeyType, key: Buffer, signature: Buffer, exchangeHash: Buffer): void {
  const fields = new Fields(signature);
  const algorithm = fields.string().toString("latin1");
  const raw = fields.string();
  if (!type.algorithms.includes(algorithm)) {
    throw new HostKeyProofError(`a ${type.name} host key was proven with ${JSON.stringify(algorithm)}`);
  }
  if (!holds(readKey(type, key), algorithm, raw, exchangeHash)) {
    throw new HostKeyProofError(`the server could not prove that it owns its ${type.name} host key`);
  }
}

/** The key in a blob of the given type. Throws ScanProtocolError when it is another one, or malformed. */
function readKey(type: KeyType, blob: Buffer): KeyObject {
  const fields = new Fields(blob);
  const name = fields.string().toString("latin1");
  if (name !== type.name) {
    throw new ScanProtocolError(`asked for a ${type.name} host key, got ${JSON.stringify(name)}`);
  }
  try {
    return createPublicKey({ format: "jwk", key: jwkOf(name, fields) });
  } catch (error) {
    if (error instanceof ScanProtocolError) throw error;
    throw new ScanProtocolError(`the server's ${name} host key is malformed`, { cause: error });
  }
}

/** The key's fields as a JSON Web Key: RFC 8709 (Ed25519), RFC 4253, 6.6 (RSA), RFC 5656, 3.1 (ECDSA). Points must be uncompressed (4). */
function jwkOf(name: string, fields: Fields): JsonWebKey {
  if (name === "ssh-ed25519") return { kty: "OKP", crv: "Ed25519", x: fields.string().toString("base64url") };
  if (name === "ssh-rsa") {
    const [e, n] = [fields.string(), fields.string()];
    return { kty: "RSA", e: number(e), n: number(n) };
  }
  const curve = CURVES[name]!;
  const id = fields.string().toString("latin1");
  const point = fields.string();
  if (id !== curve.id || point.length !== 1 + 2 * curve.bytes || point[0] !== 4) {
    throw new ScanProtocolError(`the server's ${name} host key is malformed`);
  }
  const x = point.subarray(1, 1 + curve.bytes).toString("base64url");
  return { kty: "EC", crv: curve.jwk, x, y: point.subarray(1 + curve.bytes).toString("base64url") };
}

/** A number of a JSON Web Key, which has no leading zeroes. */
function number(bytes: Buffer): string {
  return Buffer.from(withoutLeadingZeroes(bytes)).toString("base64url");
}

/** Whether the signature is valid. ECDSA signatures are two numbers in SSH, and have a fixed length for Node. */
function holds(key: KeyObject, algorithm: string, raw: Buffer, data: Buffer): boolean {
  if (algorithm === "ssh-ed25519") return verify(null, data, key, raw);
  const curve = CURVES[algorithm];
  if (curve === undefined) return verify(RSA_HASHES[algorithm]!, data, key, raw);
  const fields = new Fields(raw);
  const signature = Buffer.concat([
    padded(fields.string(), curve.bytes),
    padded(fields.string(), curve.bytes),
  ]);
  return verify(curve.hash, data, { key, dsaEncoding: "ieee-p1363" }, signature);
}
