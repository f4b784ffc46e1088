import { signal } from "@preact/signals";
import { call, type Session, session } from "./api.ts";
import type { Kind } from "./rows.ts";
import { feed } from "./state.ts";

/**
 * `connecting`: never connected; `loading`: everything is being sent; `live`; `partial`: the launcher itself does not see the whole tree;
 * `lost`: no connection, what is shown is old.
 */
export type Connection = "connecting" | "loading" | "live" | "partial" | "lost";

export const connection = signal<Connection>("connecting");

/** A browser draws nothing in a tab in the background: there batches are shown after this, milliseconds. */
const HIDDEN_MS = 1_000;
const RETRY_MS = 2_000;
const RETRY_MOST_MS = 30_000;

let source: EventSource | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let failures = 0;
let scheduled = false;
let complete = true;

/** Follows the one stream of events until `unfollow`. */
export function follow(): void {
  unfollow();
  feed.begin();
  const events = new EventSource("/v1/events");
  source = events;
  events.onopen = () => {
    failures = 0;
    // Cut off before the end of everything: it is sent from its beginning.
    if (feed.resyncing) feed.begin();
    show();
  };
  events.onerror = () => {
    connection.value = connection.peek() === "connecting" ? "connecting" : "lost";
    // The browser connects again by itself, except after an answer that is no stream.
    if (events.readyState === EventSource.CLOSED) void again();
  };
  on(events, "put", ({ kind, id, row }) => feed.put(kind, id, row));
  on(events, "remove", ({ kind, id }) => feed.remove(kind, id));
  on(events, "gap", () => feed.begin());
  on(events, "synced", (data) => {
    feed.synced();
    complete = data.complete;
  });
  on(events, "view", (data) => {
    complete = data.complete;
  });
}

export function unfollow(): void {
  clearTimeout(retry);
  source?.close();
  source = undefined;
}

interface Told {
  readonly kind: Kind;
  readonly id: string;
  readonly row: unknown;
  readonly complete: boolean;
}

function on(events: EventSource, name: string, take: (data: Told) => void): void {
  events.addEventListener(name, (event) => {
    take(JSON.parse((event as MessageEvent<string>).data));
    if (scheduled) return;
    scheduled = true;
    // All that came since the last frame is shown at once.
    if (document.hidden) setTimeout(flush, HIDDEN_MS);
    else requestAnimationFrame(flush);
  });
}

function flush(): void {
  scheduled = false;
  feed.flush();
  show();
}

function show(): void {
  if (source?.readyState !== EventSource.OPEN) return;
  connection.value = feed.resyncing ? "loading" : complete ? "live" : "partial";
}

/** After an answer that is no stream: asks whether the session has ended, else tries again, later each time. */
async function again(): Promise<void> {
  unfollow();
  try {
    session.value = await call<Session>("GET", "/v1/session");
  } catch {
    if (session.peek() === null) return;
  }
  const wait = Math.min(RETRY_MOST_MS, RETRY_MS * 2 ** failures++);
  retry = setTimeout(follow, wait * (0.5 + Math.random() / 2));
}
