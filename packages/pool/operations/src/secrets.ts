import { createHash, timingSafeEqual } from "node:crypto";
import { hexId, type Random } from "@nodeyard/runtime";

/**
 * A new secret of 64 hexadecimal digits, and its hash. Two version 4 UUIDs have 244 random bits, too many to guess, so one round
 * of SHA-256 protects them.
 */
export function newSecret(random: Random): { readonly secret: string; readonly hash: string } {
  const secret = hexId(random) + hexId(random);
  return { secret, hash: hashOf(secret) };
}

/** SHA-256, hexadecimal. */
export function hashOf(secret: string): string {
  return createHash("sha256").update(secret).digest("hex");
}

/** Whether the hash is of this secret, in a time that does not depend on how much of it is right. */
export function isSecret(secret: string, hash: string): boolean {
  const [stored, shown] = [Buffer.from(hash), Buffer.from(hashOf(secret))];
  return stored.length === shown.length && timingSafeEqual(stored, shown);
}
