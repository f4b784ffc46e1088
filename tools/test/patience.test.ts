import { expect, test, vi } from "vitest";
import { patience, patient } from "../../testing/patience.ts";

const FACTOR = "NODEYARD_TEST_PATIENCE";
test("limits grow with what the parent measured, once", () => {
  vi.stubEnv(FACTOR, "2.5");
  expect(patient(1_001)).toBe(2_503);
  vi.stubEnv(FACTOR, undefined);
  const measured = patience();
  expect(measured).toBeGreaterThanOrEqual(1);
  expect(measured).toBeLessThanOrEqual(8);
  expect(process.env[FACTOR]).toBe(String(measured));
  expect(patience()).toBe(measured);
  vi.unstubAllEnvs();
});
