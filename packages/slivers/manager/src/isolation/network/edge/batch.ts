import { CommandError } from "../../../errors.ts";
import { run } from "../../edge/run.ts";

/** A line for `ip -batch` or `tc -batch`. */
export interface BatchLine {
  readonly text: string;
  /** Error messages that mean that the wanted state exists already. */
  readonly mayFail?: RegExp;
}

/** A failed line and the program's message. */
export interface BatchFailure {
  readonly line: BatchLine;
  readonly said: string;
}

/** iproute2's message after each failed line, with the number of the line from 1. */
const FAILED = /^Command failed -:(\d+)$/;

/** The lines that failed unexpectedly, from the program's standard error; undefined when the error is not about lines. */
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
 * Runs all lines in one process, also those after a failed one. Throws CommandError when a line failed unexpectedly. Lines are independent
 * of each other, so those that succeeded stay in effect.
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
