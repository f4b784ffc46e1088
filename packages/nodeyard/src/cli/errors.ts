import { errorClass, NodeyardError } from "@nodeyard/runtime";

/** A wrong command line: exit code 2, where every other failure is 1. */
export class UsageError extends errorClass("cli.usage") {}

/** A command that was understood and could not do what was asked. */
export class CommandError extends NodeyardError {}

/** A command that has said itself what is wrong; only the exit code is left. */
export class CommandFailed extends Error {
  readonly exitCode: number;

  constructor(exitCode: number) {
    super(`exit code ${exitCode}`);
    this.exitCode = exitCode;
  }
}
