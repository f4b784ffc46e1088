import { VirtualClock } from "@nodeyard/runtime";
import { expect, test } from "vitest";
import { jobAccess } from "../src/nodes/access.ts";

/** A cluster whose token controller does not run, asked for a token without an end. */
function waiting() {
  const clock = new VirtualClock();
  let reads = 0;
  const connection = { post: async () => ({}), get: async () => ({ data: void reads++ }) };
  const caller = new AbortController();
  const token = jobAccess(connection as never, clock).token("ns", "user", 0, caller.signal);
  return { clock, caller, error: token.catch((error: unknown) => error), reads: () => reads };
}

test("a secret that gets no token ends the launch after half a minute, and says what to do", async () => {
  const { clock, error, reads } = waiting();
  await clock.advance(31_000);
  expect(await error).toMatchObject({
    kind: "transient",
    message: expect.stringMatching(/set token-lifetime$/),
  });
  expect(reads()).toBeLessThan(70);
});

test("a caller that gives up ends the wait", async () => {
  const { clock, caller, error, reads } = waiting();
  await clock.advance(1_000);
  caller.abort(new Error("given up"));
  await clock.advance(1_000);
  expect(String(await error)).toContain("given up");
  const before = reads();
  await clock.advance(60_000);
  expect(reads()).toBe(before);
});
