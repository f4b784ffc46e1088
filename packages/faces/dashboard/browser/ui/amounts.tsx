import { amountText, resourceText } from "@nodeyard/client/amounts";

/** Amounts and limits by resource. */
export type Used = Readonly<
  Record<
    string,
    { readonly limit: number | null; readonly used: number; readonly used_by_others: number | null }
  >
>;

/** How much of each limit is used. Resources without a limit are left out. */
export function Amounts({
  title,
  amounts,
  names = {},
}: {
  readonly title: string;
  readonly amounts: Used;
  /** Names of limits, where they have other ones than the resources. */
  readonly names?: Readonly<Record<string, string>>;
}) {
  const limited = Object.entries(amounts).flatMap(([resource, { limit, used, used_by_others: others }]) =>
    limit === null ? [] : [{ resource, limit, used, others: others ?? 0 }],
  );
  if (limited.length === 0) return null;
  return (
    <div>
      <p class="dim">{title}</p>
      <ul class="amounts">
        {limited.map(({ resource, limit, used, others }) => (
          <li key={resource}>
            <span>{names[resource] ?? resourceText(resource)}</span>
            <span class="bar" aria-hidden="true">
              {used > 0 && (
                <span class={used + others >= limit ? "bad" : "busy"} style={{ width: part(used, limit) }} />
              )}
              {others > 0 && <span class="quiet" style={{ width: part(others, limit) }} />}
            </span>
            <span>
              {amountText(resource, used)} of {amountText(resource, limit)}
              {others > 0 && <span class="dim">, and {amountText(resource, others)} by others</span>}
            </span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A fraction as a CSS width, at most 100 %. */
export function part(amount: number, whole: number): string {
  return `${Math.min(100, (amount / Math.max(whole, 1e-9)) * 100)}%`;
}
