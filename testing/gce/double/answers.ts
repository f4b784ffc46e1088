import type { Answer } from "../../double-server.ts";

/** Of a proxy on the way. */
export const PAGE: Answer = {
  ...{ status: 404, headers: { "content-type": "text/html" } },
  text: "<html><title>404</title><p>There is no such page.</p></html>",
};

/** The request is refused. The body is that of Google's APIs (google.rpc.Status in JSON, with the older `errors` beside it). */
export class Refusal extends Error {
  readonly status: number;
  readonly reason: string;
  readonly details: readonly object[];

  constructor(status: number, reason: string, message: string, details: readonly object[] = []) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.details = details;
  }

  answer(): Answer {
    const { status: code, message, reason, details } = this;
    const errors = [{ message, domain: code === 403 ? "usageLimits" : "global", reason }];
    return json(code, { error: { code, message, errors, ...(details.length > 0 && { details }) } });
  }
}

export function json(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  const typed = { "content-type": "application/json; charset=UTF-8", ...headers };
  return { status, headers: typed, text: body === undefined ? "" : JSON.stringify(body) };
}

/** The details by which newer parts of the API name a reason. */
export function errorInfo(reason: string, metadatas: Readonly<Record<string, string>> = {}): object {
  return {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason,
    domain: "compute.googleapis.com",
    metadata: metadatas,
  };
}

/** Lists in pages. Tokens are of the double alone. */
export function page<T>(
  all: readonly T[],
  query: URLSearchParams,
  most: number,
): { readonly items: readonly T[]; readonly nextPageToken?: string } {
  const start = Number(query.get("pageToken") ?? 0);
  const size = Math.min(most, Number(query.get("maxResults") ?? 500));
  const items = all.slice(start, start + size);
  return { items, ...(start + size < all.length && { nextPageToken: String(start + size) }) };
}

/**
 * Whether a resource fits a filter: terms `field = value`, `field eq value`, `labels.key = value` and `field : *`, joined by AND. Compute's
 * filters can do more; what this cannot read is refused, and never passes.
 */
export function fits(resource: object, filter: string | null): boolean {
  if (filter === null || filter.trim() === "") return true;
  return filter.split(/\s+AND\s+/).every((term) => {
    const [, field, operator, raw] =
      /^\(?\s*([\w.-]+)\s*(=|!=|:|\seq\s)\s*"?([^")]*)"?\s*\)?$/.exec(term) ?? [];
    if (field === undefined || operator === undefined)
      throw new Refusal(400, "invalid", `Invalid value for field 'filter': '${filter}'.`);
    const value = field
      .split(".")
      .reduce<unknown>((inner, key) => (inner as Record<string, unknown> | undefined)?.[key], resource);
    if (operator === ":") return raw === "*" ? value !== undefined : String(value).includes(raw ?? "");
    return (String(value) === raw) === (operator !== "!=");
  });
}

/** An aggregated list: every zone is named in each page, those without items with a warning. */
export function aggregated(
  what: "instance" | "disk",
  all: readonly { zone: string }[],
  zones: readonly string[],
  query: URLSearchParams,
  most: number,
): Record<string, unknown> {
  const fitting = all.filter((one) => fits(one, query.get("filter")));
  const { items, nextPageToken } = page(fitting, query, most);
  const scopes = zones.map((zone) => {
    const here = items.filter((one) => one.zone.endsWith(`/${zone}`));
    const scope = `zones/${zone}`;
    const warning = {
      code: "NO_RESULTS_ON_PAGE",
      message: `There are no results for scope '${scope}' on this page.`,
      data: [{ key: "scope", value: scope }],
    };
    return [scope, here.length > 0 ? { [`${what}s`]: here } : { warning }] as const;
  });
  return {
    ...{ kind: `compute#${what}AggregatedList`, id: "aggregated", items: Object.fromEntries(scopes) },
    ...(nextPageToken !== undefined && { nextPageToken }),
  };
}

export function missing(what: string): never {
  throw new Refusal(404, "notFound", `The resource '${what}' was not found`);
}

export function exists(what: string): Refusal {
  return new Refusal(409, "alreadyExists", `The resource '${what}' already exists`);
}

export function invalid(field: string, value: string, why = ""): Refusal {
  return new Refusal(400, "invalid", `Invalid value for field '${field}': '${value}'. ${why}`);
}
