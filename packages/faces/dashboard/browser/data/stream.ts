import { signal } from "@preact/signals";
import { call, type Session, session } from "./api.ts";
import { listen, type StreamMessage, take } from "./events.ts";
import { feed } from "./state.ts";

/**
 * `connecting`: not connected yet. `loading`: all rows are being sent. `live`. `partial`: the launcher does not see the whole tree.
 * `lost`: no connection, the data on the page is old.
 */
export type Connection = "connecting" | "loading" | "live" | "partial" | "lost";

export const connection = signal<Connection>("connecting");

/** Milliseconds between flushes in a background tab, where browsers call no animation frames. */
const HIDDEN_MS = 1_000;
const RETRY_MS = 2_000;
const RETRY_MOST_MS = 30_000;

let close: (() => void) | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let failures = 0;
let scheduled = false;
let complete = true;
let isOpen = false;

/** Follows the stream of events until `unfollow`. */
export function follow(): void {
  unfollow();
  feed.begin();
  close = listenShared(hear) ?? listen(hear);
}

export function unfollow(): void {
  clearTimeout(retry);
  close?.();
  close = undefined;
  isOpen = false;
}

/**
 * Listens through a worker that all tabs of a browser share. Over HTTP/1.1 a browser opens six connections per host: with one stream per
 * tab, a seventh tab would never load. Undefined in browsers without shared workers (phones, which have few tabs).
 */
function listenShared(tell: (message: StreamMessage) => void): (() => void) | undefined {
  const path = document.querySelector<HTMLMetaElement>('meta[name="worker"]')?.content;
  if (typeof SharedWorker === "undefined" || path === undefined) return undefined;
  const worker = new SharedWorker(trusted(path));
  worker.port.onmessage = ({ data }: MessageEvent<readonly StreamMessage[]>) => data.forEach(tell);
  worker.port.postMessage({ follow: session.peek()?.csrf });
  const leave = () => worker.port.postMessage({ leave: true });
  addEventListener("pagehide", leave);
  return () => {
    removeEventListener("pagehide", leave);
    leave();
    worker.port.close();
  };
}

interface Policies {
  createPolicy(
    name: string,
    rules: { createScriptURL(url: string): string },
  ): { createScriptURL(url: string): string };
}
const policies = (globalThis as { readonly trustedTypes?: Policies }).trustedTypes;
/** Trusted Types policy: the only script that may be loaded by address is our worker. */
const policy = policies?.createPolicy("nodeyard", {
  createScriptURL: (url) => (/^\/assets\/worker-[0-9a-f]+\.js$/.test(url) ? url : ""),
});

function trusted(path: string): string {
  return policy?.createScriptURL(path) ?? path;
}

function hear(message: StreamMessage): void {
  take(feed, message);
  if (message.type === "synced" || message.type === "view") complete = message.complete;
  if (message.type === "open") {
    isOpen = true;
    failures = 0;
  }
  if (message.type === "lost" || message.type === "closed") {
    isOpen = false;
    connection.value = connection.peek() === "connecting" ? "connecting" : "lost";
    if (message.type === "closed") void again();
  }
  if (scheduled) return;
  scheduled = true;
  // All events since the last frame are shown together.
  if (document.hidden) setTimeout(flush, HIDDEN_MS);
  else requestAnimationFrame(flush);
}

function flush(): void {
  scheduled = false;
  feed.flush();
  if (isOpen) connection.value = feed.resyncing ? "loading" : complete ? "live" : "partial";
}

/** After an answer that is not a stream: checks whether the session has ended, otherwise reconnects with growing pauses. */
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

// A page that is restored from the back/forward cache was disconnected when it was left.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted && session.peek() != null) follow();
});
