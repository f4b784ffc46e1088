import { OddAnswer } from "./faults.ts";

/** Most pages of a list. More would be a list without an end. */
const MOST_PAGES = 10_000;

/**
 * All pages of a list, in order. `read` has the words by which the page before names the next one; the first has none. Rejects with OddAnswer
 * when the pages have no end: what is in them must not be taken for all there is. `what` begins the message.
 */
export async function allPages<P>(
  what: string,
  read: (next: string | undefined) => Promise<P>,
  nextIn: (page: P) => string | undefined,
): Promise<readonly P[]> {
  const all: P[] = [];
  const seen = new Set<string>();
  for (let next: string | undefined; all.length < MOST_PAGES; ) {
    const page = await read(next);
    all.push(page);
    next = nextIn(page) || undefined;
    if (next === undefined) return all;
    if (seen.has(next)) throw new OddAnswer(`${what}: a page repeats`);
    seen.add(next);
  }
  throw new OddAnswer(`${what}: more than ${MOST_PAGES} pages`);
}
