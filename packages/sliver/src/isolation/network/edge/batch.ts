import { run } from "../../edge/run.ts";
import { CommandError } from "../../errors.ts";
import { type BatchLine, batchFailures } from "../batch.ts";

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
