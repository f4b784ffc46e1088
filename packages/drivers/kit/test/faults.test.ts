import { expect, test } from "vitest";
import { ApiError, DriverError, errorMap, judged, wasRefused } from "../src/index.ts";

const TABLE = [
  { kind: "quota", codes: ["OverQuota"] },
  { kind: "capacity", codes: [/^Insufficient/], statuses: [409], remedy: "wait" },
  { kind: "quota", text: /too many/ },
] as const;
const fault = (status: number | undefined, code = "", text = "") => ({ codes: [code], status, text });

test("the first row that fits counts, and needs all that it says; else the status", () => {
  const kind = (...one: Parameters<typeof fault>) => judged(TABLE, fault(...one)).kind;
  expect(kind(409, "OverQuota")).toBe("quota");
  expect(kind(409, "InsufficientCapacity")).toBe("capacity");
  expect(kind(400, "InsufficientCapacity")).toBe("configuration");
  expect(kind(500, "", "too many machines")).toBe("quota");
  const others = [undefined, 302, 425, 500, 401, 403, 404, 410, 422, 418].map((status) => kind(status));
  const [later, access, gone] = ["transient", "access", "not-found"];
  expect(others).toEqual([later, later, later, later, access, access, gone, gone, "configuration", "fatal"]);
});

test("an error is mapped once, with the place, the remedy and its cause", () => {
  const map = errorMap(TABLE);
  const cause = new ApiError(
    "POST /a",
    { status: 409, text: "" },
    { codes: ["InsufficientX"], text: "full" },
  );
  const mapped = map(new DriverError("fatal", "a list", { cause }), "here");
  expect(mapped).toMatchObject({ kind: "capacity", cause });
  expect(mapped.message).toMatch(/^here: .*full.*; wait$/);
  expect(map(mapped, "there")).toBe(mapped);
  expect(map(new TypeError("x"), "here")).toMatchObject({ kind: "fatal", message: "here: x" });
  const text = `<html><title>503</title><b>Busy</b>${" and busy".repeat(200)}</html>`;
  const refused = new ApiError("GET /a", { status: 503, text });
  expect(map(refused, "here").message).toMatch(
    /^here: GET \/a was answered 503: Busy and busy.{1,500}\.\.\.$/,
  );
  expect([wasRefused(refused, 404, 503), wasRefused(refused, "Busy")]).toEqual([true, false]);
});
