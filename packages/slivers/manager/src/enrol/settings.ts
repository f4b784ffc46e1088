import { isDeepStrictEqual } from "node:util";
import {
  type KeySet,
  NODE_ID,
  parseKeySet,
  rotate,
  SliverProtocolError,
  sshKey,
  verifyText,
} from "@nodeyard/sliver-protocol";
import { z } from "zod";
import { EnrolError } from "../errors.ts";
import { readJson } from "../read-json.ts";

const schema = z.strictObject({
  v: z.literal(1),
  /** Absent: the machine's present node id, or else its host name. */
  node: z.string().regex(NODE_ID).optional(),
  keySet: z.unknown(),
  /** Signed rotations that lead to the key set, for a machine with an earlier one. */
  rotations: z.array(z.string()).max(64).default([]),
  /** Public keys of launchers that may log in to the control account, `type base64` each. */
  controlKeys: z.array(z.string()).min(1).max(64),
  backEnd: z.enum(["account", "container"]).default("account"),
  /** Replaces parts of the daemon's configuration file. */
  sliverd: z.record(z.string(), z.unknown()).default({}),
  installPackages: z.boolean().default(false),
  /** True while an image of a machine is made: nothing is started or reloaded. */
  image: z.boolean().default(false),
});

/** The settings of a machine that a launcher requests. */
export type EnrolSettings = Omit<z.output<typeof schema>, "keySet"> & {
  readonly keySet: ReturnType<typeof parseKeySet>;
};

/** Throws EnrolError. */
export function parseSettings(text: string): EnrolSettings {
  const data = readJson(schema, text, (what, cause) => new EnrolError(`settings${what}`, { cause }));
  try {
    const controlKeys = data.controlKeys.map(sshKey);
    return { ...data, controlKeys, keySet: parseKeySet(data.keySet) };
  } catch (cause) {
    if (!(cause instanceof SliverProtocolError)) throw cause;
    throw new EnrolError(`settings: ${cause.message}`, { cause });
  }
}

/**
 * Refuses key sets that do not follow from those that the machine trusts. The machine then belongs to another launcher, whose slivers would
 * end with the first document. `now` is in seconds. Throws EnrolError.
 */
export function checkSameLauncher(
  present: KeySet | undefined,
  next: { readonly keySet: KeySet; readonly rotations: readonly string[] },
  now: number,
): void {
  if (present === undefined || leadsTo(present, next, now)) return;
  const names = present.keys.map(({ kid }) => kid).join(", ");
  throw new EnrolError(
    `this machine is enrolled with the keys of another launcher (${names}); undo that first: nodeyard sliverd uninstall`,
  );
}

function leadsTo(
  present: KeySet,
  { keySet, rotations }: { readonly keySet: KeySet; readonly rotations: readonly string[] },
  now: number,
): boolean {
  let current = present;
  for (const signed of rotations) {
    if (current.version >= keySet.version) break;
    try {
      const step = parseKeySet(verifyText("key-set", signed, current, now));
      if (step.version === current.version + 1) current = rotate(current, step, now);
    } catch {
      // Signed with a key that this set does not contain: a rotation from before this set.
    }
  }
  return isDeepStrictEqual(current, keySet) || follows(current, keySet);
}

/** For restored settings: the machine trusts a newer key set that follows from these keys. */
function follows(present: KeySet, older: KeySet): boolean {
  return (
    present.version > older.version &&
    present.keys.some(({ kid, x }) => older.keys.some((key) => key.kid === kid && key.x === x))
  );
}
