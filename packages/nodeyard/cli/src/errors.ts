import { errorClass, NodeyardError } from "@nodeyard/runtime";

/** A wrong command line: exit code 2, where every other failure is 1. */
export class UsageError extends errorClass("cli.usage") {}

/**
 * A valid command that failed: exit code 1. Its `code` is for programs and docs/reference/errors.md; the message names the
 * remedy.
 */
export class CommandError extends NodeyardError {}

/** The wait took longer than `--timeout`: exit code 124, as of timeout(1). */
export class TimedOut extends errorClass("cli.timeout") {}

/** `run` and `shell` had no node to run anything on: exit code 125, since any other may be the command's. */
export class NoNode extends errorClass("cli.no_node") {}

/** A signal ended the waiting. The lease is given back unless it is to be kept. */
export class Interrupted extends errorClass("cli.interrupted") {}

/** A command that has printed its error already; only the exit code is left to set. */
export class CommandFailed extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}

/** Every exit code of the program, for its help and for docs/reference/exit-codes.md. */
export const EXIT_CODES: Readonly<Record<number, string>> = {
  0: "done",
  1: "failure; the last line on stderr says why",
  2: "usage error; nothing was done",
  124: "--timeout passed before what was waited for",
  125: "`run` and `shell` got no node; when they did, their code is that of ssh: the command's own, or 255 without a connection",
};

/** The exit code for what a command threw; 1 for everything that has none of its own. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandFailed) return error.exitCode;
  if (error instanceof UsageError) return 2;
  if (error instanceof NoNode) return 125;
  return error instanceof TimedOut ? 124 : 1;
}
