import { expect, test } from "vitest";
import { FailureLog } from "../../src/sources/poller.ts";

test("a failure is logged when it is new, at each sixtieth repetition, and when it is over", () => {
  const said: string[] = [];
  const log = { info: (text: string) => void said.push(text), error: (text: string) => void said.push(text) };
  const failures = new FailureLog("documents", log);
  failures.worked();
  for (let count = 0; count < 125; count++) failures.failed(new Error("HTTP 500"));
  failures.failed(new Error("HTTP 404"));
  failures.worked();
  failures.worked();
  failures.failed(new Error("HTTP 404"));
  expect(said).toEqual([
    "documents: HTTP 500",
    "documents: HTTP 500 (60 times in a row)",
    "documents: HTTP 500 (120 times in a row)",
    "documents: HTTP 404",
    "documents: works again",
    "documents: HTTP 404",
  ]);
});
