import type { SigningKeys } from "@nodeyard/sliver-protocol";
import { SliverHostError } from "./errors.ts";

/** The settings that a launcher requests from a machine. `sliver-enrol` reads them and defines their meaning. */
export interface EnrolWish {
  /** Node id; absent: the id of an earlier enrolment, else the machine's host name. */
  readonly node?: string;
  /** "container": slivers are copies of images, which needs more programs. */
  readonly backEnd: "account" | "container";
  /** False: missing packages are an error that names them. */
  readonly installPackages: boolean;
  /** Parts of the daemon's configuration file. */
  readonly sliverd: Readonly<Record<string, unknown>>;
  /** An image of machines is being made: no service is started, and no host name becomes a node id. */
  readonly image?: boolean;
}

/** The answer of `sliver-enrol`. */
export interface Enrolled {
  /** Empty when the machine has no node id yet. */
  readonly node: string;
  /** What was done, or what a dry run would do, in that order; empty: everything is as it should be. */
  readonly changes: readonly string[];
  readonly missingPackages: readonly string[];
  /** What the operator has to do or to know. */
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
