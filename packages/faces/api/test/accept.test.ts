import { describe, expect, test } from "vitest";
import { bestType } from "../src/http/accept.ts";

const BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8";

describe("what Accept likes best", () => {
  test.each([
    [undefined, "text/html"],
    ["*/*", "text/html"],
    ["text/*", "text/html"],
    [BROWSER, "text/html"],
    ["application/json", "application/json"],
    ["application/*", "application/json"],
    ["APPLICATION/JSON", "application/json"],
    ["application/json, text/plain", "text/plain"],
    ["application/json;q=0.9, text/plain;q=0.8", "application/json"],
    ["text/plain;q=0.8, application/json; q=0.9", "application/json"],
    ["*/*;q=0.1, application/json", "application/json"],
    ["application/json, */*;q=0", "application/json"],
    ["*/*, text/html;q=0", "text/plain"],
  ])("%s: %s", (accept, wanted) => {
    expect(bestType(accept)).toBe(wanted);
  });

  // The old server failed with 500.
  test.each([
    "image/png",
    "text/html;q=0, image/*",
    "application/json;q=0",
    "application/json;q=nonsense",
    "",
  ])("none of the three in %j: text", (accept) => {
    expect(bestType(accept)).toBe("text/plain");
  });
});
