import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Finding } from "../findings.ts";
import type { Workspace } from "../workspace.ts";

const TESTS = /^testing\/|\/test\//;
/** The limit itself is what is tested. */
const TESTED = /keyscan\/test\/hostile|process\/test\/rest\.test/;
const FIXED = [
  // Of a test or a hook, of what is polled for, of a program.
  /(?<![-\w])timeout: \d[\d_]{3,}/,
  // Of a call.
  /AbortSignal\.timeout\(\d/,
  /^ {0,4}(?:\}|(?:before|after)(?:All|Each)\(.*), \d[\d_]{3,}\);$/,
  /\b(?:LIMIT|PATIENCE)_MS = \d/,
];

/** Limits of time in tests grow with the machine's load: a constant one ends a sound test on a busy machine. */
export function checkLimits({ root, files }: Workspace): Finding[] {
  return files.flatMap(({ path, package: owner }) => {
    if (!TESTS.test(path) || TESTED.test(path) || (owner === undefined && !path.startsWith("testing/")))
      return [];
    const lines = readFileSync(join(root, path), "utf8").split("\n");
    return lines.flatMap((text, at) =>
      FIXED.some((pattern) => pattern.test(text))
        ? [{ rule: "limit", severity: "error" as const, path, line: at + 1, message: REMEDY }]
        : [],
    );
  });
}

const REMEDY =
  "a limit of time that does not grow with the machine's load; leave it out, or write patient(MS) of testing/patience.ts";
