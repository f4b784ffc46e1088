import { z } from "zod";
import { parse } from "./document.ts";
import { KeySetError } from "./errors.ts";

/** Seconds up to the end of the year 9999, after which dates cannot be formatted. */
const seconds = z.number().int().min(0).max(253_402_300_799);

const schema = z.strictObject({
  v: z.literal(1),
  /** Grows with each rotation. */
  version: z.number().int().min(0),
  keys: z
    .array(
      z.strictObject({
        kid: z.string().regex(/^[A-Za-z0-9._-]{1,64}$/),
        /** Raw Ed25519 public key, base64url. */
        x: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
        notBefore: seconds.optional(),
        notAfter: seconds.optional(),
      }),
    )
    .min(1)
    .max(16)
    .refine((keys) => new Set(keys.map(({ kid }) => kid)).size === keys.length, "a kid is there twice"),
});

/** The keys whose signatures a node trusts. Times are seconds since the Unix epoch. */
export type KeySet = z.output<typeof schema>;
type TrustedKey = KeySet["keys"][number];

/** Throws GrammarError. */
export function parseKeySet(value: unknown): KeySet {
  return parse(schema, value, "key set");
}

/** The key with this id, if it is valid at `now` (seconds). */
export function keyAt(keys: KeySet, kid: string, now: number): TrustedKey | undefined {
  const key = keys.keys.find((one) => one.kid === kid);
  if (key === undefined || now < (key.notBefore ?? 0) || now > (key.notAfter ?? Number.POSITIVE_INFINITY))
    return undefined;
  return key;
}

/** Why `keyAt` finds no key, for people. */
export function whyNoKey({ version, keys }: KeySet, kid: string, now: number): string {
  const key = keys.find((one) => one.kid === kid);
  if (key === undefined) return `key set ${version} has ${keys.map((one) => one.kid).join(", ")}`;
  const { notBefore = 0, notAfter = 0 } = key;
  return now < notBefore ? `it is from ${dateOf(notBefore)} on` : `it was until ${dateOf(notAfter)}`;
}

function dateOf(seconds: number): string {
  return new Date(seconds * 1_000).toISOString();
}

/** Most versions that one rotation may skip. A jump to the highest number would make further rotations impossible. */
const MAX_STEP = 1000;

/** Checks that `next` may replace `current`: its version must be higher. A key of `current` must have signed it. Throws KeySetError. */
export function rotate(current: KeySet, next: KeySet, now: number): KeySet {
  if (next.version <= current.version || next.version > current.version + MAX_STEP)
    throw new KeySetError(
      `key set ${next.version} does not follow key set ${current.version}; the next ${MAX_STEP} versions do`,
    );
  if (!next.keys.some(({ kid }) => keyAt(next, kid, now) !== undefined))
    throw new KeySetError(
      `key set ${next.version} has no key that is valid now; the node would trust no key`,
    );
  return next;
}
