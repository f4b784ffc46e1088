import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { simulate } from "./run.ts";

const lessons = JSON.parse(readFileSync(new URL("./seeds.json", import.meta.url), "utf8")) as {
  readonly seed: number;
  readonly requests?: number;
  readonly troubles?: number;
  readonly lesson: string;
}[];

test.for(lessons)("seed $seed: $lesson", async ({ lesson: _, ...options }) => {
  const result = await simulate(options);
  expect(result.used).toBeGreaterThan(0);
});

const others = Array.from({ length: 12 }, (_, index) => 101 + index);

test.for(others)("seed %i holds every rule", async (seed) => {
  const result = await simulate({ seed, requests: 20, troubles: 8 });
  expect(result.used + result.leases).toBeGreaterThan(0);
});
