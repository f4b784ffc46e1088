import { seededRandom } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { retryAfter, safeRetry } from "../src/index.ts";

const random = seededRandom(1);
const answer = (status: number, headers = {}) => ({ status, headers, text: "" });
const again = (method: "GET" | "POST", said?: ReturnType<typeof answer>, attempt = 0) =>
  safeRetry({ request: { method, url: "/", headers: {} }, answer: said, attempt }, 0, random);

test("what the server says of when to come back is obeyed, in seconds or as a date", () => {
  expect(again("POST", answer(429, { "retry-after": "3" }))).toEqual({ retryMs: 3_000, overloaded: true });
  const date = { "retry-after": "Thu, 01 Jan 1970 00:00:07 GMT" };
  expect(retryAfter({ headers: date }, 2_000)).toBe(5_000);
  expect(retryAfter({ headers: date }, 9_000)).toBe(0);
  for (const odd of ["soon", "", "-1"]) expect(retryAfter({ headers: { "retry-after": odd } }, 0)).toBeNull();
});

test("a create is repeated only when the server said that nothing was done", () => {
  for (const response of [undefined, answer(500), answer(502), answer(503), answer(504)]) {
    expect(again("POST", response).retryMs).toBeNull();
    expect(again("GET", response).retryMs).toBeGreaterThan(0);
  }
  expect(again("POST", answer(503, { "retry-after": "1" })).retryMs).toBe(1_000);
  expect(again("POST", answer(413)).retryMs).toBeNull();
});

test("a refusal that waiting does not end is the answer; so is the last of many, and one for much later", () => {
  for (const status of [400, 401, 403, 404, 409, 501])
    expect(again("GET", answer(status)).retryMs).toBeNull();
  expect(again("GET", answer(503), 4).retryMs).toBeNull();
  expect(again("GET", answer(429, { "retry-after": "3600" }))).toEqual({ retryMs: null, overloaded: true });
});
