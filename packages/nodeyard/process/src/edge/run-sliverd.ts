import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { constants } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { ProcessError } from "../errors.ts";

/** Flags for the Node that runs the sliver manager. With a small young generation it takes some 40 MiB less while slivers flood it. */
export const SLIVERD_FLAGS = ["--disable-warning=ExperimentalWarning", "--max-semi-space-size=2"];

/**
 * The path of the sliver manager's executable; undefined: its package is not installed. The package is not imported, because the
 * root daemon is a process of its own. TypeScript in the repository, JavaScript in an installed package.
 */
export function sliverdProgram(): string | undefined {
  try {
    const root = dirname(fileURLToPath(import.meta.resolve("@nodeyard/sliver")));
    return ["bin/sliverd.ts", "bin/sliverd.js"]
      .map((name) => join(root, name))
      .find((file) => existsSync(file));
  } catch {
    return undefined;
  }
}

/** Signals that a person or a supervisor sends to the command and means for the program. */
const PASSED_ON = ["SIGTERM", "SIGINT", "SIGHUP", "SIGUSR2"] as const;

/** Runs `sliverd` with `words` on this terminal until it ends; resolves with its exit code. Signals are passed on to it. */
export function runSliverd(words: readonly string[]): Promise<number> {
  const program = sliverdProgram();
  if (program === undefined)
    throw new ProcessError(
      "process.no_sliverd",
      'the package @nodeyard/sliver is not installed here: install it from the files of a release ("nodeyard docs install")',
    );
  return runProgram(process.execPath, [...SLIVERD_FLAGS, program, ...words]);
}

/**
 * Runs a program on this terminal until it ends; resolves with its exit code, for a signal with 128 and its number, as shells do.
 * Signals are passed on to it. Rejects when it cannot be started.
 */
export function runProgram(command: string, words: readonly string[]): Promise<number> {
  const child = spawn(command, words, { stdio: "inherit" });
  const pass = (signal: NodeJS.Signals) => void child.kill(signal);
  for (const signal of PASSED_ON) process.on(signal, pass);
  return new Promise<number>((resolve, reject) => {
    child.on("error", reject);
    child.on("exit", (code, signal) => resolve(code ?? 128 + (signal ? constants.signals[signal] : 0)));
  }).finally(() => {
    for (const signal of PASSED_ON) process.off(signal, pass);
  });
}
