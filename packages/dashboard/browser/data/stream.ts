import { signal } from "@preact/signals";
import { call, type Session, session } from "./api.ts";
import { listen, type Told, take } from "./events.ts";
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

let close: (() => void) | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;
let failures = 0;
let scheduled = false;
let complete = true;
let isOpen = false;

/** Follows the one stream of events until `unfollow`. */
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
 * By a worker that all tabs of this browser share: over HTTP/1.1 a browser has six connections to a host, and a seventh tab would never load.
 * Undefined where there are no such workers: on phones, which have few tabs.
 */
function listenShared(tell: (told: Told) => void): (() => void) | undefined {
  const path = document.querySelector<HTMLMetaElement>('meta[name="worker"]')?.content;
  if (typeof SharedWorker === "undefined" || path === undefined) return undefined;
  const worker = new SharedWorker(trusted(path));
  worker.port.onmessage = ({ data }: MessageEvent<readonly Told[]>) => data.forEach(tell);
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
/** The one script that may be started by its address: a worker of our own. */
const policy = policies?.createPolicy("nodeyard", {
  createScriptURL: (url) => (/^\/assets\/worker-[0-9a-f]+\.js$/.test(url) ? url : ""),
});

function trusted(path: string): string {
  return policy?.createScriptURL(path) ?? path;
}

function hear(told: Told): void {
  take(feed, told);
  if (told.type === "synced" || told.type === "view") complete = told.complete;
  if (told.type === "open") {
    isOpen = true;
    failures = 0;
  }
  if (told.type === "lost" || told.type === "closed") {
    isOpen = false;
    connection.value = connection.peek() === "connecting" ? "connecting" : "lost";
    if (told.type === "closed") void again();
  }
  if (scheduled) return;
  scheduled = true;
  // All that came since the last frame is shown at once.
  if (document.hidden) setTimeout(flush, HIDDEN_MS);
  else requestAnimationFrame(flush);
}

function flush(): void {
  scheduled = false;
  feed.flush();
  if (isOpen) connection.value = feed.resyncing ? "loading" : complete ? "live" : "partial";
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

// A page that comes back from the history had left.
addEventListener("pageshow", ({ persisted }) => {
  if (persisted && session.peek() != null) follow();
});
