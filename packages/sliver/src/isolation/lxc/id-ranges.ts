import { FIRST_ID, HIGHEST_INDEX, IDS } from "./names.ts";

/**
 * Who in a file of the host's has an id that is a sliver's; undefined: nobody. `ranges`: the file gives out ranges
 * (/etc/subuid: name:first:count), else single ids (/etc/passwd: name:x:id).
 */
export function clashes(text: string, ranges: boolean): string | undefined {
  const end = FIRST_ID + (HIGHEST_INDEX + 1) * IDS;
  for (const line of text.split("\n")) {
    const fields = line.split(":");
    const first = Number(ranges ? fields[1] : fields[2]);
    const count = ranges ? Number(fields[2]) : 1;
    if (fields.length < 3 || !Number.isSafeInteger(first) || !Number.isSafeInteger(count)) continue;
    if (first < end && first + count > FIRST_ID) return fields[0];
  }
  return undefined;
}
