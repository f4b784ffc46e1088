import { expect, test } from "vitest";
import { progressText } from "../src/await-build.ts";

const work = {
  kind: "build" as const,
  image: "small",
  build: "b1",
  provider: null,
  phase: "Setting up python3",
  bytes: 150_000_000,
  total: 600_000_000,
  elapsedMs: 65_000,
  bytesPerSecond: 2_310_000,
  etaMs: 194_800,
};

test.each([
  [{}, "1:05: Setting up python3; 150 of 600 MB, 2.3 MB/s, 3:15 left"],
  [{ total: null, etaMs: null }, "1:05: Setting up python3; 150 MB, 2.3 MB/s"],
])("how far a build is, %j", (change, line) => {
  expect(progressText({ ...work, ...change })).toBe(line);
});
