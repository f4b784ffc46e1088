import { expect, test } from "vitest";
import type { YardEvent } from "../src/index.ts";
import { problem, Server } from "./server.ts";

function stream(...pieces: readonly string[]): Response {
  return new Response(ReadableStream.from(pieces).pipeThrough(new TextEncoderStream()));
}

const put = (number: number) =>
  `id: b.${number}\nevent: put\ndata: {"kind":"lease","id":"a","row":{"id":"a"}}\n\n`;
const synced = (number: number) => `id: b.${number}\nevent: synced\ndata: {"complete":true}\n\n`;

/** The types of the first `count` events. */
async function types(server: Server, count: number, signal?: AbortSignal): Promise<string[]> {
  const found: string[] = [];
  const events: AsyncIterable<YardEvent> = server.client.events(
    { kinds: "lease" },
    signal === undefined ? {} : { signal },
  );
  for await (const { type } of events) {
    found.push(type);
    if (found.length === count) break;
  }
  return found;
}

test("events resume after the last one that came, and a gap is handed on", async () => {
  const first = `retry: 2000\n: begins\n\n${put(1)}${synced(2)}id: b.3\n: passed\n\n`;
  const replies = [
    // Cut within an event, which comes again.
    () => stream(first.slice(0, 40), first.slice(40), put(4).slice(0, 20)),
    () => new TypeError("fetch failed"),
    () => problem(503, "api.not_ready", { "retry-after": "1" }),
    () => stream(`event: gap\ndata: {"why":"restarted"}\n\n${put(1)}${synced(2)}`),
  ];
  const server = new Server(() => replies.shift()!());
  expect(await server.pass(types(server, 5))).toEqual(["put", "synced", "gap", "put", "synced"]);
  const last = server.sent.map(({ headers }) => headers["last-event-id"]);
  expect(last).toEqual([undefined, "b.3", "b.3", "b.3"]);
  expect(server.sent[0]!.path).toBe("/v1/events?kinds=lease");
  expect(server.sent.every(({ signal }) => signal.aborted)).toBe(true);
});

test("a stream from which nothing comes is opened anew", async () => {
  let count = 0;
  const server = new Server(() => {
    if (++count > 1) return stream(put(1));
    const { signal } = server.sent[0]!;
    const body = new ReadableStream({
      start: (controller) => signal.addEventListener("abort", () => controller.error(signal.reason)),
    });
    return new Response(body);
  });
  expect(await server.pass(types(server, 1), 2)).toEqual(["put"]);
});

test("a caller without the right is refused at once, and a follower that is asked to stop stops", async () => {
  const server = new Server(() => problem(401, "api.no_token"));
  await expect(server.pass(types(server, 1))).rejects.toMatchObject({ code: "api.no_token", status: 401 });
  expect(server.sent).toHaveLength(1);
  const silent = new Server(() => "never");
  const controller = new AbortController();
  const following = types(silent, 1, controller.signal);
  controller.abort(new Error("enough"));
  await expect(silent.pass(following)).rejects.toThrow("enough");
});

test("a server that never comes back is reported", async () => {
  const server = new Server(() => new TypeError("fetch failed"));
  await expect(server.pass(types(server, 1), 5)).rejects.toMatchObject({ code: "client.unreachable" });
  expect(server.sent.length).toBeGreaterThan(6);
});
