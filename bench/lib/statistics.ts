/** The value below which the share `p` (0 to 1) of `values` lies; NaN for none. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? Number.NaN;
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}

/** Rounded to a useful precision. */
export function round(value: number, digits = 2): number {
  return Number(value.toFixed(digits));
}
