import { describe, expect, test } from "vitest";
import { visibilityOf } from "../src/http/caller.ts";

const TOKEN = "a-token-of-this-listener";
const here = { bySocket: false, address: "127.0.0.1", headers: { host: "127.0.0.1:8005" } };
const away = { bySocket: false, address: "192.0.2.7", headers: { host: "launcher.example:8005" } };

describe("which callers see the notes of jobs and drivers", () => {
  test("the owner of the socket does", () => {
    expect(visibilityOf({ bySocket: true, address: undefined, headers: {} }, undefined)).toBe("all");
    expect(visibilityOf({ bySocket: true, address: undefined, headers: {} }, TOKEN)).toBe("all");
  });

  test.each([
    ["127.0.0.1", "localhost:8005"],
    ["127.0.0.53", "127.0.0.53"],
    ["::1", "[::1]:8005"],
    ["::ffff:127.0.0.1", "localhost"],
  ])("a program of this machine does: %s as %s", (address, host) => {
    expect(visibilityOf({ bySocket: false, address, headers: { host } }, undefined)).toBe("all");
  });

  test("another machine does not, whatever it calls us", () => {
    expect(visibilityOf(away, undefined)).toBe("public");
    expect(visibilityOf({ ...away, headers: { host: "localhost:8005" } }, undefined)).toBe("public");
  });

  test.each([
    ["a page of another origin", { origin: "https://evil.example" }],
    ["a name that was made to point here", { host: "evil.example:8005" }],
    ["no name at all", { host: undefined }],
    ["what a proxy passes on", { "x-forwarded-for": "192.0.2.7" }],
    ["what a proxy passes on, as the standard has it", { forwarded: "for=192.0.2.7" }],
  ])("%s does not, though it comes from loopback", (_, headers) => {
    expect(visibilityOf({ ...here, headers: { ...here.headers, ...headers } }, undefined)).toBe("public");
  });

  test("where a token is asked for nothing is seen without it", () => {
    const bearing = (authorization: string | undefined) =>
      visibilityOf({ ...here, headers: { ...here.headers, authorization } }, TOKEN);
    expect(bearing(`Bearer ${TOKEN}`)).toBe("all");
    expect(bearing(`bearer  ${TOKEN}`)).toBe("all");
    for (const wrong of [undefined, "", TOKEN, `Basic ${TOKEN}`, `Bearer ${TOKEN}x`, "Bearer ", "Bearer"])
      expect(bearing(wrong), wrong ?? "none").toBe("nothing");
  });
});
