import { expect, test } from "vitest";
import { freePlaces } from "../nova-log.ts";

test("a freed place counts the listings that showed it and were answered before it was taken", () => {
  const listing = (began: number, at: number) => ({ began, at });
  const places = freePlaces(
    {
      arrivals: [1, 2, 100, 205],
      freed: [50, 120],
      // One began too early, one is answered too late.
      listings: [listing(40, 60), listing(55, 90), listing(95, 130), listing(125, 150), listing(150, 160)],
    },
    2,
  );
  expect(places).toEqual([
    { freeMs: 50, shown: 1 },
    { freeMs: 85, shown: 2 },
  ]);
});
