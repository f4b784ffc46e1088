/** `1 node`, `2 nodes`, `1 process`, `2 processes`. `many`: for a noun whose plural is not `one` with an s. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

/** The most similar name in `known`, if at most a third of the letters of `name` differ. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  let best: string | undefined;
  let least = Math.floor(name.length / 3) + 1;
  for (const candidate of known) {
    const far = distance(name, candidate);
    if (far < least) [best, least] = [candidate, far];
  }
  return best;
}

/** Names that one message lists. */
const MAX_LISTED = 30;

/** The end of an error about a name that is not in `known`: the most similar one, and those that there are, in order. */
export function choices(name: string, known: Iterable<string>): string {
  const all = [...new Set(known)].sort();
  const hint = nearest(name, all);
  const listed = all.slice(0, MAX_LISTED).join(", ") || "none";
  const more = all.length > MAX_LISTED ? ` and ${all.length - MAX_LISTED} more` : "";
  return `${hint === undefined ? "" : `did you mean ${hint}? `}known: ${listed}${more}`;
}

/** Letters to add, remove or replace, and neighbours to exchange. */
function distance(a: string, b: string): number {
  let before: readonly number[] = [];
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const swap = row[j - 1]! + Number(a[i - 1] !== b[j - 1]);
      const isExchange = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const exchange = isExchange ? before[j - 2]! + 1 : swap;
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, swap, exchange));
    }
    before = row;
    row = next;
  }
  return row[b.length]!;
}
