import type { Feed } from "./feed.ts";
import type { Kind } from "./rows.ts";

/** Messages of the stream of events. */
export type StreamMessage =
  | { readonly type: "put"; readonly kind: Kind; readonly id: string; readonly row: unknown }
  | { readonly type: "remove"; readonly kind: Kind; readonly id: string }
  | { readonly type: "synced" | "view"; readonly complete: boolean }
  /** Events were missed, or another stream begins: all rows follow. */
  | { readonly type: "gap" }
  | { readonly type: "open" }
  /** The connection is lost; the browser reconnects. */
  | { readonly type: "lost" }
  /** The answer was not an event stream. The browser does not reconnect. */
  | { readonly type: "closed" };

/** Opens a stream of all kinds. Returns a function that closes it. */
export function listen(tell: (message: StreamMessage) => void): () => void {
  const events = new EventSource("/v1/events?newest=true&nulls=false");
  events.onopen = () => tell({ type: "open" });
  events.onerror = () => tell({ type: events.readyState === EventSource.CLOSED ? "closed" : "lost" });
  for (const type of ["put", "remove", "synced", "view", "gap"])
    events.addEventListener(type, ({ data }: MessageEvent<string>) => tell({ ...JSON.parse(data), type }));
  return () => events.close();
}

/** Adds a message to the feed. The next flush shows it. */
export function take(feed: Feed, message: StreamMessage): void {
  if (message.type === "put") feed.put(message.kind, message.id, message.row);
  else if (message.type === "remove") feed.remove(message.kind, message.id);
  else if (message.type === "synced") feed.synced();
  // A stream that was cut off before `synced` is sent from its beginning.
  else if (message.type === "gap" || (message.type === "open" && feed.resyncing)) feed.begin();
}
