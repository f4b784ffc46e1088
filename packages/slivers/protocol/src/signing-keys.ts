import { createHash, type KeyObject } from "node:crypto";
import { jsonOrUndefined } from "@nodeyard/runtime";
import { z } from "zod";
import type { SliverClient } from "./client.ts";
import { parse } from "./document.ts";
import { GrammarError, KeySetError } from "./errors.ts";
import { type KeySet, parseKeySet } from "./key-set.ts";
import type { NodeReport } from "./report.ts";
import { rawPublicKey, type Signer, signerFromPem, signText } from "./signed.ts";

/** Rotations that are kept for nodes that were offline. A node that missed more must be enrolled again. */
const MAX_ROTATIONS = 64;

const schema = z.strictObject({
  v: z.literal(1),
  /** Id of the key that signs now. */
  kid: z.string(),
  keySet: z.unknown(),
  /** Private keys (PKCS #8 PEM) by id, for the keys in the set. */
  pems: z.record(z.string(), z.string().max(4096)),
  /** Signed key sets, oldest first. Each is signed with a key of its predecessor. */
  rotations: z
    .array(z.strictObject({ version: z.number().int().min(1), signed: z.string().max(65_536) }))
    .max(MAX_ROTATIONS),
});

/** A launcher's signing keys: private keys, the key set that nodes trust, and the signed chain of earlier rotations. */
export type SigningKeys = Omit<z.output<typeof schema>, "keySet"> & { readonly keySet: KeySet };

/** The first key set of an installation, with one key. */
export function newSigningKeys(privateKey: KeyObject): SigningKeys {
  const { kid, x, pem } = described(privateKey);
  return {
    v: 1,
    kid,
    keySet: { v: 1, version: 1, keys: [{ kid, x }] },
    pems: { [kid]: pem },
    rotations: [],
  };
}

/**
 * Makes `privateKey` the signing key. Earlier keys stay trusted for `overlap` seconds, so that what they signed is valid until it is
 * replaced. 0 ends the trust at each node as soon as the new set is delivered, for a key that may be known to others. `now` is in seconds.
 * Throws KeySetError.
 */
export function rotateSigningKeys(
  keys: SigningKeys,
  privateKey: KeyObject,
  { now, overlap }: { readonly now: number; readonly overlap: number },
): SigningKeys {
  const { kid, x, pem } = described(privateKey);
  if (Object.hasOwn(keys.pems, kid)) throw new KeySetError(`the key ${kid} is in use already`);
  const kept = overlap === 0 ? [] : keys.keySet.keys.filter((key) => (key.notAfter ?? now) >= now);
  const end = now + overlap;
  const keySet = parseKeySet({
    v: 1,
    version: keys.keySet.version + 1,
    keys: [...kept.map((key) => ({ ...key, notAfter: Math.min(key.notAfter ?? end, end) })), { kid, x }],
  });
  const signed = signText("key-set", keySet, signerOf(keys));
  const rotations = [...keys.rotations, { version: keySet.version, signed }].slice(-MAX_ROTATIONS);
  const pems = Object.fromEntries(
    keySet.keys.map((key) => [key.kid, key.kid === kid ? pem : keys.pems[key.kid]!]),
  );
  return { v: 1, kid, keySet, pems, rotations };
}

/** The present signing key. */
export function signerOf({ kid, pems }: SigningKeys): Signer {
  return signerFromPem(kid, pems[kid]!);
}

/** The signed key sets that bring a node from `version` to the present one, in order. Throws KeySetError. */
export function rotationsAfter({ keySet, rotations }: SigningKeys, version: number): readonly string[] {
  const missing = rotations.filter((one) => one.version > version);
  if (missing.length === keySet.version - version) return missing.map(({ signed }) => signed);
  throw new KeySetError(
    version > keySet.version
      ? `the node trusts key set ${version}, these keys are key set ${keySet.version}: are they a restored copy? Enrol the node again`
      : `the node trusts key set ${version}, which is too old for key set ${keySet.version}: enrol it again`,
  );
}

/** The content of the file of keys. It is secret. */
export function encodeSigningKeys(keys: SigningKeys): string {
  return `${JSON.stringify(keys, null, 2)}\n`;
}

/** Throws GrammarError, SignatureError. The messages contain nothing secret. */
export function decodeSigningKeys(text: string): SigningKeys {
  const value = jsonOrUndefined(text);
  // Without a cause, because the parser's message quotes parts of the secret file.
  if (value === undefined) throw new GrammarError("signing keys: the file is not JSON");
  const read = parse(schema, value, "signing keys", true);
  const keys = { ...read, keySet: parseKeySet(read.keySet) };
  const trusted = keys.keySet.keys.find(({ kid }) => kid === keys.kid);
  const pem = keys.pems[keys.kid];
  if (trusted === undefined || pem === undefined)
    throw new GrammarError(`signing keys: the signing key ${keys.kid} is not among the keys`);
  if (rawPublicKey(signerFromPem(keys.kid, pem).privateKey) !== trusted.x)
    throw new GrammarError(`signing keys: the public and private halves of ${keys.kid} do not match`);
  return keys;
}

/** The id of a key is its shortened thumbprint (RFC 7638), so that two keys do not get the same id by accident. */
function described(privateKey: KeyObject): { kid: string; x: string; pem: string } {
  const x = rawPublicKey(privateKey);
  const thumbprint = createHash("sha256").update(JSON.stringify({ crv: "Ed25519", kty: "OKP", x }));
  const kid = thumbprint.digest("hex").slice(0, 16);
  return { kid, x, pem: privateKey.export({ type: "pkcs8", format: "pem" }).toString() };
}

/**
 * Brings a node to the present key set by a chain of signed rotations. Must be done before the first document that a new key signs.
 * Resolves with true when the node was behind. Throws KeySetError when the chain is too short; rejects like the client.
 */
export async function deliverKeys(
  client: SliverClient,
  keys: SigningKeys,
  { keySet }: Pick<NodeReport, "keySet">,
  signal: AbortSignal,
): Promise<boolean> {
  const steps = rotationsAfter(keys, keySet);
  for (const step of steps) await client.rotateKeys(step, signal);
  return steps.length > 0;
}
