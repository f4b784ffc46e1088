/** Rows that exist beyond each edge, so that fast scrolling does not show blank space. */
const SPARE = 8;

/** The rows that exist of `count` when `top` pixels are scrolled: `first` up to, but without, `last`. */
export function windowOf(
  top: number,
  height: number,
  rowHeight: number,
  count: number,
): { readonly first: number; readonly last: number } {
  const last = Math.min(count, Math.ceil((Math.max(0, top) + height) / rowHeight) + SPARE);
  // When a filter leaves fewer rows than are scrolled, the last rows are shown.
  const first = Math.max(
    0,
    Math.min(Math.floor(top / rowHeight) - SPARE, count - Math.ceil(height / rowHeight)),
  );
  return { first, last };
}
