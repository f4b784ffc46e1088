import { describe, expect, test } from "vitest";
import { replyWith } from "../src/http/reply.ts";

const COMPUTED = Date.UTC(2026, 0, 31, 10, 0, 0, 750);
const LAST_MODIFIED = "Sat, 31 Jan 2026 10:00:00 GMT";
const body = (text: string) => ({ type: "text/plain", bytes: Buffer.from(text), computed: COMPUTED });

describe("headers of an answer", () => {
  test("anybody may read it, for a second", () => {
    const { status, headers } = replyWith(body("abc"), {});
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      "access-control-allow-origin": "*",
      "cache-control": "max-age=1, public",
      "last-modified": LAST_MODIFIED,
      expires: "Sat, 31 Jan 2026 10:00:01 GMT",
      "content-type": "text/plain",
    });
  });

  test.each([
    [LAST_MODIFIED, 304],
    ["Sat, 31 Jan 2026 10:00:01 GMT", 304],
    ["Fri, 31 Jan 2031 10:00:00 GMT", 304],
    ["Sat, 31 Jan 2026 09:59:59 GMT", 200],
    ["yesterday", 200],
  ])("If-Modified-Since %s: %i", (since, status) => {
    const reply = replyWith(body("abc"), { "if-modified-since": since });
    expect(reply.status).toBe(status);
    expect(reply.bytes?.toString()).toBe(status === 304 ? undefined : "abc");
  });
});
