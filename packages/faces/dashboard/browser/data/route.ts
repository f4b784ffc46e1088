import { computed, signal } from "@preact/signals";

/** Address of a view: `#/nodes/0000000001?q=text`. */
export interface Address {
  readonly view: string;
  readonly id: string | undefined;
  readonly query: URLSearchParams;
}

/** Reads the part of an address after `#`. */
export function parseHash(hash: string): Address {
  const [path = "", query = ""] = hash.replace(/^#?\/?/, "").split("?", 2);
  const [view = "", ...rest] = path.split("/");
  const id = rest.join("/");
  return { view, id: id === "" ? undefined : decode(id), query: new URLSearchParams(query) };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `#/nodes/ID?state=ready`; empty values are left out. */
export function hrefOf(view: string, id?: string, query: Readonly<Record<string, string>> = {}): string {
  const chosen = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== ""));
  const path = id === undefined ? `#/${view}` : `#/${view}/${encodeURIComponent(id)}`;
  return chosen.size === 0 ? path : `${path}?${chosen}`;
}

const hash = signal("");
export const address = computed(() => parseHash(hash.value));

/** Follows the address bar. */
export function followAddress(): void {
  const read = () => {
    hash.value = location.hash;
  };
  addEventListener("hashchange", read);
  read();
}

export function go(href: string): void {
  location.hash = href;
}

/** Changes the filter of the current view without a new entry in the browser's history. */
export function refine(query: Readonly<Record<string, string>>): void {
  const { view, id, query: now } = address.peek();
  const href = hrefOf(view, id, { ...Object.fromEntries(now), ...query });
  history.replaceState(null, "", href);
  hash.value = href;
}
