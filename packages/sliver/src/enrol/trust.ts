import { isDeepStrictEqual } from "node:util";
import { type KeySet, parseKeySet, rotate, verifyText } from "@nodeyard/sliver-protocol";
import { EnrolError } from "./errors.ts";

/**
 * Refuses keys that do not follow those which the machine believes already: it is another launcher's then, and its slivers would end
 * with the first document. `now` is in seconds. Throws EnrolError.
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
      // Signed by a key that this set does not have: a step of before.
    }
  }
  return isDeepStrictEqual(current, keySet) || follows(current, keySet);
}

/** A restored file of settings: what the machine believes is newer, and came from these keys. */
function follows(present: KeySet, older: KeySet): boolean {
  return (
    present.version > older.version &&
    present.keys.some(({ kid, x }) => older.keys.some((key) => key.kid === kid && key.x === x))
  );
}
