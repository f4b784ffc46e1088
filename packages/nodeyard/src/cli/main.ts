import { messageOf } from "@nodeyard/runtime";
import { CommanderError } from "commander";
import type { Machine } from "../process/index.ts";
import { CommandFailed, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { createProgram } from "./program.ts";
import { plain } from "./table.ts";

/** Runs one command line, without the program's own name, and returns the exit code. Never rejects. */
export async function main(words: readonly string[], io: Io, machine: Machine): Promise<number> {
  const program = createProgram({ io, machine });
  try {
    await program.parseAsync(words, { from: "user" });
    return 0;
  } catch (error) {
    return codeOf(error, io, words.includes("--debug"));
  }
}

function codeOf(error: unknown, io: Io, debug: boolean): number {
  // Commander has said it already. 0 is for help and version that were asked for; without a command help is a failure.
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    return error.code === "commander.help" ? 1 : 2;
  }
  if (error instanceof CommandFailed) return error.exitCode;
  io.err(`nodeyard: ${plain(messageOf(error))}\n`);
  if (debug && error instanceof Error) io.err(`${error.stack}\n`);
  return error instanceof UsageError ? 2 : 1;
}
