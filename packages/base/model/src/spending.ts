/** Where is what tenants with a budget have spent in a month on nodes that they have no more: a ledger for each month and tenant. */
export const SPENDING = "/nodeyard/spending";

/** `month`: as "2026-12", in the time zone of the budget. */
export function spendingPath(month: string, tenant: string): string {
  return `${SPENDING}/${month}|${encodeURIComponent(tenant)}`;
}

/** The month and tenant of a ledger; undefined for any other path. */
export function spendingAt(path: string): { readonly month: string; readonly tenant: string } | undefined {
  if (!path.startsWith(`${SPENDING}/`)) return undefined;
  const [, month, name] = /^(\d{4}-\d{2})\|([^/|]*)$/.exec(path.slice(SPENDING.length + 1)) ?? [];
  if (month === undefined || name === undefined) return undefined;
  try {
    return { month, tenant: decodeURIComponent(name) };
  } catch {
    return undefined;
  }
}
