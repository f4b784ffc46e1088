import { listen, type StreamMessage, take } from "./data/events.ts";
import { Feed } from "./data/feed.ts";
import type { Kind } from "./data/rows.ts";
import { Table } from "./data/table.ts";

/** One stream of events for all tabs of a browser. A new tab first gets the rows received so far. */
const tables: Record<Kind, Table<unknown>> = {
  node: new Table(),
  request: new Table(),
  lease: new Table(),
  image: new Table(),
  pool: new Table(),
  member: new Table(),
  standing: new Table(),
};
const feed = new Feed(tables);
const ports = new Set<MessagePort>();
/** Session that opened the stream. */
let owner: string | undefined;
let close: (() => void) | undefined;
let isOpen = false;
let complete = true;
let pending: StreamMessage[] = [];
let timer: ReturnType<typeof setTimeout> | undefined;

/** Milliseconds during which events are collected into one message, because each message wakes all tabs. */
const GATHER_MS = 16;

addEventListener("connect", (event) => {
  const [port] = (event as MessageEvent).ports;
  port!.onmessage = ({ data }: MessageEvent<{ readonly follow?: string; readonly leave?: true }>) => {
    if (data.leave === true) drop(port!);
    else admit(port!, data.follow);
  };
});

function admit(port: MessagePort, session: string | undefined): void {
  send();
  ports.add(port);
  if (close === undefined || session !== owner) return begin(session);
  const rows = Object.entries(tables).flatMap(([name, table]) =>
    [...table.entries()].flatMap(([id, row]): StreamMessage[] => {
      const kind = name as Kind;
      // While all rows are being sent, a row that was not sent yet may not exist any more. It is left out; if it exists, it is sent later.
      return feed.isNamed(kind, id) ? [{ type: "put", kind, id, row }] : [];
    }),
  );
  const synced: StreamMessage[] = feed.resyncing ? [] : [{ type: "synced", complete }];
  port.postMessage([
    { type: "gap" },
    { type: isOpen ? "open" : "lost" },
    ...rows,
    ...synced,
  ] satisfies StreamMessage[]);
}

/** Closes the stream when the last tab has left. */
function drop(port: MessagePort): void {
  ports.delete(port);
  if (ports.size > 0) return;
  close?.();
  close = undefined;
}

function begin(session: string | undefined): void {
  close?.();
  owner = session;
  hear({ type: "gap" });
  close = listen(hear);
}

function hear(message: StreamMessage): void {
  take(feed, message);
  if (message.type === "open") isOpen = true;
  if (message.type === "synced" || message.type === "view") complete = message.complete;
  if (message.type === "lost" || message.type === "closed") isOpen = false;
  // The next tab that asks opens a new stream.
  if (message.type === "closed") close = undefined;
  pending.push(message);
  timer ??= setTimeout(send, GATHER_MS);
}

function send(): void {
  clearTimeout(timer);
  timer = undefined;
  feed.flush();
  if (pending.length > 0) for (const port of ports) port.postMessage(pending);
  pending = [];
}
