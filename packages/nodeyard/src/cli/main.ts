import { messageOf } from "@nodeyard/runtime";
import { CommanderError } from "commander";
import type { Machine } from "../machine/index.ts";
import { CommandFailed, UsageError } from "./errors.ts";
import type { Io } from "./io.ts";
import { createProgram, HelpNeedsAll } from "./program.ts";

/** Runs one command line, without the program's own name, and returns the exit code. Never rejects. */
export async function main(words: readonly string[], io: Io, machine: Machine): Promise<number> {
  const run = async (quick: boolean) => {
    const program = await createProgram({ io, machine }, { quick });
    await program.parseAsync(words, { from: "user" });
  };
  try {
    await run(true).catch((error) => {
      // No action has begun: help is in place of one.
      if (error instanceof HelpNeedsAll) return run(false);
      throw error;
    });
    return 0;
  } catch (error) {
    return codeOf(error, io, words.includes("--debug"));
  }
}

async function codeOf(error: unknown, io: Io, debug: boolean): Promise<number> {
  // Commander has said it already. 0 is for help and version that were asked for; without a command help is a failure.
  if (error instanceof CommanderError) {
    if (error.exitCode === 0) return 0;
    return error.code === "commander.help" ? 1 : 2;
  }
  if (error instanceof CommandFailed) return error.exitCode;
  // Here, since a command line that succeeds needs no table.
  const { plain } = await import("./table.ts");
  io.err(`nodeyard: ${plain(messageOf(error))}\n`);
  if (debug && error instanceof Error) io.err(`${error.stack}\n`);
  return error instanceof UsageError ? 2 : 1;
}
