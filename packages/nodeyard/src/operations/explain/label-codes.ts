/** Why nobody would serve a request for a label now, beside what pools say. */
export const labelCodes = {
  "label.unknown": "No pool that is registered or configured offers it",
  "label.declined": "Every pool that offers it would decline",
  "label.unasked": "Pools offer it, but nobody who serves them has answered",
} as const;

export type LabelCode = keyof typeof labelCodes;
