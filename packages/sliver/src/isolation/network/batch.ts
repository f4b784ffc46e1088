/** One line for `ip -batch` or `tc -batch`. */
export interface BatchLine {
  readonly text: string;
  /** What it may say when it fails, since then it is as it should be. */
  readonly mayFail?: RegExp;
}

export interface BatchFailure {
  readonly line: BatchLine;
  readonly said: string;
}

/** What iproute2 says after each line that failed, which is counted from 1. */
const FAILED = /^Command failed -:(\d+)$/;

/** Lines of a batch that failed and should not have, by what the program wrote to standard error; undefined: it is not about lines. */
export function batchFailures(
  lines: readonly BatchLine[],
  stderr: readonly string[],
): BatchFailure[] | undefined {
  const failures: BatchFailure[] = [];
  let said: string[] = [];
  let found = false;
  for (const text of stderr) {
    const number = FAILED.exec(text)?.[1];
    if (number === undefined) {
      said.push(text);
      continue;
    }
    const line = lines[Number(number) - 1];
    if (line === undefined) return undefined;
    found = true;
    const all = said.join("; ");
    if (line.mayFail?.test(all) !== true) failures.push({ line, said: all });
    said = [];
  }
  return found ? failures : undefined;
}
