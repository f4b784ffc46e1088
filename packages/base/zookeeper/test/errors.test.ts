import { expect, test } from "vitest";
import { errorFromCode } from "../src/errors.ts";
import { wire } from "../src/index.ts";

test("a refusal says what was refused, carries no stack of ours, and leaves the stacks of others alone", () => {
  const limit = Error.stackTraceLimit;
  const error = errorFromCode(wire.ErrorCode.noNode, { op: "getData", path: "/a" });
  expect(error).toMatchObject({ name: "NoNode", code: "zookeeper.no_node", path: "/a", outcome: "none" });
  expect(error.stack).not.toMatch(/\n\s+at /);
  expect(Error.stackTraceLimit).toBe(limit);
  expect(new Error("other").stack).toMatch(/\n\s+at /);
});
