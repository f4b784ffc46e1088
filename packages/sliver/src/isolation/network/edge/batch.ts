import { CommandError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";

/** One line for `ip -batch` or `tc -batch`. */
export interface BatchLine {
  readonly text: string;
  /** What it may say when it fails, since then it is as it should be. */
  readonly mayFail?: RegExp;
}

/** A line that failed, with what the program said. */
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

/**
 * Runs all lines in one process, also those after one that failed. Throws CommandError when one failed that may not:
 * each line stands for itself, so what worked stays.
 */
export async function batch(
  program: "ip" | "tc",
  lines: readonly BatchLine[],
  signal: AbortSignal,
): Promise<void> {
  const stderr: string[] = [];
  const input = lines.map(({ text }) => `${text}\n`).join("");
  try {
    await run([program, "-force", "-batch", "-"], { signal, input, onLine: (line) => stderr.push(line) });
  } catch (cause) {
    if (!(cause instanceof CommandError)) throw cause;
    const failures = batchFailures(lines, stderr);
    if (failures === undefined) throw cause;
    const [first] = failures;
    if (first !== undefined)
      throw new CommandError(`${program} ${first.line.text}: ${first.said}`, { cause });
  }
}
