import type { SlotSettings } from "./offers.ts";
import type { RequestFacts } from "./order.ts";

/** Requestor of min-ready nodes, which no client asked for (docs/contract/launcher.md, "min-ready"). */
export const MIN_READY = "NodePool:min-ready";

/** Facts of a request that tell caches apart. Its tenant always does. */
export const CACHE_FACTS = ["label", "client", "project", "branch"] as const;
type CacheFacts = Readonly<Record<(typeof CACHE_FACTS)[number], string | undefined>>;
type User = Pick<RequestFacts, "requestor" | "requestorData" | "tenantName">;

/** Undefined for nodes that are made before anybody asks for them. */
export function cacheFactsOf(label: string, { requestor, requestorData }: User): CacheFacts | undefined {
  if (requestor === MIN_READY) return undefined;
  const data = (requestorData ?? {}) as Readonly<Record<string, unknown>>;
  const said = (name: string) => (typeof data[name] === "string" ? data[name] : undefined);
  return {
    label,
    client: said("client") ?? requestor ?? undefined,
    project: said("project"),
    branch: said("branch"),
  };
}

/**
 * The key of a request's cache: its tenant, and the parts that the label's `key` names. Undefined where the request does not say all of them:
 * then its cache is nobody's.
 */
export function cacheKeyOf(
  parts: readonly string[],
  label: string,
  request: User,
): readonly string[] | undefined {
  const facts = cacheFactsOf(label, request);
  const key = parts.map((part) => partOf(part, facts));
  const isKnown = facts !== undefined && !key.includes(undefined);
  return isKnown ? [request.tenantName ?? "", ...(key as string[])] : undefined;
}

/** With the name of its fact: a branch that is called like a client must not reach the client's cache. */
function partOf(part: string, facts: CacheFacts | undefined): string | undefined {
  if (part.startsWith("word:")) return `word=${part.slice(5)}`;
  // It is part of every key.
  if (part === "tenant") return "";
  const value = facts?.[part as keyof CacheFacts];
  return value === undefined ? undefined : `${part}=${value}`;
}

/** A cache as one text, by which what machines have is compared with what a request would use. */
export function cacheText(name: string, key: readonly string[]): string {
  return JSON.stringify([name, ...key]);
}

/** The caches that a slot would have for the request; `text` is `cacheText`. */
export function slotCaches(
  { caches = [] }: Pick<SlotSettings, "caches">,
  label: string,
  request: User,
): readonly { readonly name: string; readonly text: string }[] {
  return caches.flatMap(({ name, key: parts }) => {
    const key = cacheKeyOf(parts, label, request);
    return key === undefined ? [] : [{ name, text: cacheText(name, key) }];
  });
}
