/** Lines of a summary of failures, at most. */
const LINES = 120;
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

/** Names of the tests that `tools/suites/every-suite.ts` listed in a suite's log. */
export function secondTries(log: string): readonly string[] {
  const lines = log.replaceAll(COLOUR, "").split("\n");
  const start = lines.findIndex((line) => line.startsWith("Passed only at the second try"));
  if (start === -1) return [];
  const rest = lines.slice(start + 1);
  const end = rest.findIndex((line) => !line.startsWith("  "));
  return (end === -1 ? rest : rest.slice(0, end)).filter(
    (line) => / > /.test(line) && !line.startsWith("    "),
  );
}
