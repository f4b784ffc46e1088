/** Rows beyond the edge that exist already when they are scrolled into sight. */
const SPARE = 8;

/** Which of `count` rows exist while `top` pixels are scrolled away: `first` up to but without `last`. */
export function windowOf(
  top: number,
  height: number,
  rowHeight: number,
  count: number,
): { readonly first: number; readonly last: number } {
  const last = Math.min(count, Math.ceil((Math.max(0, top) + height) / rowHeight) + SPARE);
  // After a filter left fewer rows than are scrolled away, the last ones are shown.
  const first = Math.max(
    0,
    Math.min(Math.floor(top / rowHeight) - SPARE, count - Math.ceil(height / rowHeight)),
  );
  return { first, last };
}
