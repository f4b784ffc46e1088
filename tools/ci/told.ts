/** Lines of a summary of failures, at most. */
const LINES = 120;
/** Of an error of a test that passed at its second try. */
const ERROR_LINES = 2;
/** Of a suite that has no summary. */
const LAST_LINES = 40;
// biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
const COLOUR = /\x1b\[[0-9;]*m/g;

/** The part of a suite's log that says what failed: Vitest's own summary, or its last lines. */
export function failureOf(log: string): string {
  const lines = log.trimEnd().split("\n");
  const start = lines.findIndex((line) => /Failed (Tests|Suites)/.test(line));
  return (start === -1 ? lines.slice(-LAST_LINES) : lines.slice(start, start + LINES)).join("\n");
}

/** Names of the tests that failed in a suite's log, each once, however often it was tried. */
export function failedTests(log: string): readonly string[] {
  const found = log.replaceAll(COLOUR, "").matchAll(/^ *FAIL +(.+?)(?: \((?:initial run|\w+ retry)\))?$/gm);
  return [...new Set([...found].map(([, name]) => name!))];
}

/**
 * Tests that `tools/suites/every-suite.ts` listed in a suite's log, each with the first line of its first error and the next: a test that fails
 * once in a hundred runs has no other trace.
 */
export function secondTries(log: string): readonly string[] {
  const lines = log.replaceAll(COLOUR, "").split("\n");
  const start = lines.findIndex((line) => line.startsWith("Passed only at the second try"));
  if (start === -1) return [];
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => !line.startsWith("  "));
  const tests: string[] = [];
  let left = 0;
  for (const line of end === -1 ? rest : rest.slice(0, end)) {
    if (!line.startsWith("    ") && line.includes(" > ")) {
      tests.push(line);
      left = ERROR_LINES;
    } else if (left-- > 0) tests[tests.length - 1] += `\n${line}`;
  }
  return tests;
}
