import { z } from "zod";

/** `GET /` of a service: its range of microversions; empty strings when it has none. */
export const rangeSchema = z.object({
  version: z.object({ version: z.string().default(""), min_version: z.string().default("") }),
});

/** The newest version that client and service support; null for the oldest. */
export function chosenMicroversion(
  range: z.infer<typeof rangeSchema>["version"],
  newest: string,
): string | null {
  if (range.version === "") return null;
  if (compareVersions(range.min_version || "0.0", newest) > 0) return range.min_version;
  return compareVersions(range.version, newest) < 0 ? range.version : newest;
}

/** Negative when `a` is older. "2.9" is older than "2.10". */
export function compareVersions(a: string, b: string): number {
  const [majorA = 0, minorA = 0] = a.split(".").map(Number);
  const [majorB = 0, minorB = 0] = b.split(".").map(Number);
  return majorA - majorB || minorA - minorB;
}
