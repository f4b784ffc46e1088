import fc from "fast-check";
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

describe("ranges", () => {
  test.each([
    ["bytes=0-2", "abc", "bytes 0-2/10"],
    ["bytes=7-", "hij", "bytes 7-9/10"],
    ["bytes=-3", "hij", "bytes 7-9/10"],
    ["bytes=-30", "abcdefghij", "bytes 0-9/10"],
    ["bytes=8-99", "ij", "bytes 8-9/10"],
  ])("%s", (range, text, said) => {
    const { status, headers, bytes } = replyWith(body("abcdefghij"), { range });
    expect([status, bytes?.toString(), headers["content-range"]]).toEqual([206, text, said]);
  });

  test.each(["bytes=10-", "bytes=-0", "bytes=99-100"])("%s cannot be satisfied", (range) => {
    const { status, headers } = replyWith(body("abcdefghij"), { range });
    expect([status, headers["content-range"]]).toEqual([416, "bytes */10"]);
  });

  test.each(["bytes=5-2", "bytes=0-1,3-4", "lines=0-1", "bytes=-", "bytes=a-b"])(
    "%s is none that we serve: all of it",
    (range) => {
      expect(replyWith(body("abcdefghij"), { range }).status).toBe(200);
    },
  );

  test("two ranges next to each other are the whole", () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 2, maxLength: 50 }), fc.nat(), (bytes, where) => {
        const whole = { ...body(""), bytes: Buffer.from(bytes) };
        const cut = 1 + (where % (bytes.length - 1));
        const first = replyWith(whole, { range: `bytes=0-${cut - 1}` });
        const second = replyWith(whole, { range: `bytes=${cut}-` });
        expect([...first.bytes!, ...second.bytes!]).toEqual([...bytes]);
      }),
    );
  });
});
