import type { SigningKeys } from "@nodeyard/sliver-protocol";
import { SliverHostError } from "./errors.ts";

/** The settings that a launcher requests from a machine. `sliver-enrol` reads them and defines their meaning. */
export interface EnrolWish {
  readonly node?: string;
  readonly backEnd: "account" | "container";
  readonly installPackages: boolean;
  /** Parts of the daemon's configuration file. */
  readonly sliverd: Readonly<Record<string, unknown>>;
  readonly image?: boolean;
}

/** The answer of `sliver-enrol`. */
export interface Enrolled {
  readonly node: string;
  readonly changes: readonly string[];
  readonly missingPackages: readonly string[];
  readonly notes: readonly string[];
}

/**
 * The input of `sliver-enrol`: the requested settings, the keys that the machine shall trust with all rotations, and the key that may log
 * in to the control account.
 */
export function enrolSettings(wish: EnrolWish, keys: SigningKeys, controlKey: string): string {
  const rotations = keys.rotations.map(({ signed }) => signed);
  return JSON.stringify({ v: 1, ...wish, keySet: keys.keySet, rotations, controlKeys: [controlKey] });
}

/** Reads the answer, which is the last line of the output. Throws SliverHostError. */
export function readEnrolled(text: string): Enrolled {
  try {
    const value = JSON.parse(text.trim().split("\n").at(-1) ?? "") as Enrolled;
    if (Array.isArray(value.changes) && Array.isArray(value.notes) && Array.isArray(value.missingPackages))
      return value;
  } catch {
    // Reported below.
  }
  throw new SliverHostError(`cannot understand the machine's answer: ${JSON.stringify(text.slice(0, 200))}`);
}
