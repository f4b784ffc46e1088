import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test, vi } from "vitest";
import { patience, patient } from "../../testing/patience.ts";

const FACTOR = "NODEYARD_TEST_PATIENCE";
const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A limit of its own that does not grow: of a test or a hook, of what is waited for, of a program or a call. */
const OWN_LIMIT = [
  /(?<![-\w])timeout: \d[\d_]{3,}/,
  /AbortSignal\.timeout\(\d/,
  /^ {0,4}(?:\}|(?:before|after)(?:All|Each)\(.*), \d[\d_]{3,}\);$/m,
  /\b(?:LIMIT|PATIENCE)_MS = \d/,
];
/** The limit is what is tested, or waits for another process of this machine's file. */
const TESTED = /keyscan\/test\/hostile|process\/rest\.test/;

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

test("no test has a limit of time that does not grow with the machine's load", () => {
  const files = globSync(["testing/**/*.ts", "packages/*/test/**/*.ts"], { cwd: ROOT });
  const fixed = files.flatMap((file) => {
    if (TESTED.test(file)) return [];
    const text = readFileSync(`${ROOT}/${file}`, "utf8");
    return OWN_LIMIT.flatMap((pattern) => pattern.exec(text) ?? []).map((found) => `${file}: ${found}`);
  });
  expect(fixed, "patient(MS) of testing/patience.ts").toEqual([]);
});
