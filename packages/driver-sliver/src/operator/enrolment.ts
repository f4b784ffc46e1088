import type { SigningKeys } from "@nodeyard/sliver-protocol";
import { SliverHostError } from "./errors.ts";

/** What a launcher asks of a machine: read by `sliver-enrol`, which says what it means. */
export interface EnrolWish {
  readonly node?: string;
  readonly backEnd: "account" | "container";
  readonly installPackages: boolean;
  /** Parts of the daemon's file, as they are to be there. */
  readonly sliverd: Readonly<Record<string, unknown>>;
  readonly image?: boolean;
}

/** What `sliver-enrol` answers. */
export interface Enrolled {
  readonly node: string;
  readonly changes: readonly string[];
  readonly missingPackages: readonly string[];
  readonly notes: readonly string[];
}

/**
 * The settings that `sliver-enrol` reads on its machine: the wish, the keys that it is to trust with all rotations, and who may log in to
 * the control account.
 */
export function enrolSettings(wish: EnrolWish, keys: SigningKeys, controlKey: string): string {
  const rotations = keys.rotations.map(({ signed }) => signed);
  return JSON.stringify({ v: 1, ...wish, keySet: keys.keySet, rotations, controlKeys: [controlKey] });
}

/** The last line of what it said. Throws SliverHostError. */
export function readEnrolled(text: string): Enrolled {
  try {
    const value = JSON.parse(text.trim().split("\n").at(-1) ?? "") as Enrolled;
    if (Array.isArray(value.changes) && Array.isArray(value.notes) && Array.isArray(value.missingPackages))
      return value;
  } catch {
    // Said below.
  }
  throw new SliverHostError(`cannot understand the machine's answer: ${JSON.stringify(text.slice(0, 200))}`);
}
