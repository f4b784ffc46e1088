/** What a page of a listing has in common: the token of the next one; absent or empty on the last one. */
interface Page {
  readonly NextToken?: string | undefined;
}

/**
 * All items of a paginated listing. Each page is a call of its own and takes its own turn at the rate limit. Rejects when a page
 * fails: a partial list would make resources look deleted.
 */
export async function allPages<P extends Page, T>(
  load: (token: { readonly NextToken?: string }) => Promise<P>,
  items: (page: P) => readonly T[] | undefined,
): Promise<readonly T[]> {
  const all: T[] = [];
  let token: string | undefined;
  do {
    const page = await load(token === undefined ? {} : { NextToken: token });
    all.push(...(items(page) ?? []));
    token = page.NextToken || undefined;
  } while (token !== undefined);
  return all;
}
