import { expect, test } from "vitest";
import { progressText } from "../src/await-build.ts";

const work = {
  phase: "Setting up python3",
  bytes: 150_000_000,
  total_bytes: 600_000_000,
  elapsed_seconds: 65,
  bytes_per_second: 2_310_000,
  eta_seconds: 194.8,
};

test.each([
  [{}, "1:05: Setting up python3; 150 of 600 MB, 2.3 MB/s, 3:15 left"],
  [{ total_bytes: null, eta_seconds: null }, "1:05: Setting up python3; 150 MB, 2.3 MB/s"],
])("how far a build is, %j", (change, line) => {
  expect(progressText({ ...work, ...change })).toBe(line);
});
