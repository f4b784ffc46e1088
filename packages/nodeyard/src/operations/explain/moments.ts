/** Facts that are moments, by their names. */
export function isMoment(key: string, value: unknown): value is number {
  return typeof value === "number" && /_(at|since)$/.test(key);
}

export function timed(known: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(known).map(([key, value]) => [key, isMoment(key, value) ? iso(value) : value]),
  );
}

export function iso(ms: number | null): string | null {
  return ms === null || !Number.isFinite(ms) || Math.abs(ms) > 8.64e15 ? null : new Date(ms).toISOString();
}
