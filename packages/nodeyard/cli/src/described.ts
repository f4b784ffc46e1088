import type { Command } from "commander";

/** How a shell completes a value: as a file, as a folder, from some words, or not at all. */
export type Completed = "file" | "folder" | readonly string[] | undefined;

/** An option as its help has it. */
export interface DescribedOption {
  /** `-c, --config <file>` */
  readonly term: string;
  /** `-c` and `--config`, the short one first, where there are both. */
  readonly flags: readonly string[];
  readonly text: string;
  /** What its value completes to; null for an option without a value. */
  readonly value: Completed | null;
}

/** A positional argument. `value` as of options: what its words complete to. */
export interface DescribedArgument {
  readonly name: string;
  readonly text: string;
  readonly repeats: boolean;
  readonly value: Completed;
}

/** A command as its help has it: the source of completion, of the manual pages and of docs/reference/cli.md. */
export interface Described {
  /** Beneath the program: `["sliverd", "keys"]`; empty for the program itself. */
  readonly path: readonly string[];
  readonly usage: string;
  /** The line of the help of the command above it. */
  readonly summary: string;
  readonly arguments: readonly DescribedArgument[];
  /** Without the options of the program, which every command accepts unless it has its own option of that name. */
  readonly options: readonly DescribedOption[];
  /** What follows the options in its help, without the empty lines around it. */
  readonly notes: string;
  readonly commands: readonly Described[];
}

/**
 * Describes a command and those beneath it. All have to be loaded. Afterwards the help of these commands cannot be printed:
 * commander offers no other way to read the texts that follow it.
 */
export function describe(command: Command, path: readonly string[] = []): Described {
  const help = command.createHelp();
  return {
    path,
    usage: help.commandUsage(command),
    summary: command.description(),
    arguments: command.registeredArguments.map((one) => ({
      name: one.name(),
      text: help.argumentDescription(one),
      repeats: one.variadic,
      value: one.argChoices ?? completed(one.name()),
    })),
    options: help.visibleOptions(command).map((option) => ({
      term: help.optionTerm(option),
      flags: [option.short, option.long].filter((flag) => flag !== undefined && flag !== null),
      text: help.optionDescription(option),
      value:
        option.required || option.optional
          ? (option.argChoices ?? completed(/[<[]([^>\]]*)/.exec(option.flags)?.[1]))
          : null,
    })),
    notes: notesOf(command),
    commands: command.commands.map((inner) => describe(inner, [...path, inner.name()])),
  };
}

/** By the name that the help gives a value. */
function completed(name: string | undefined): Completed {
  if (name === "file" || name === "path" || name === "command") return "file";
  return name === "dir" || name === "folder" ? "folder" : undefined;
}

/** Commander keeps these texts to itself, but prints them after a help that is empty. */
function notesOf(command: Command): string {
  let printed = "";
  command
    .configureHelp({ formatHelp: () => "" })
    .configureOutput({
      writeOut: (text) => {
        printed += text;
      },
    })
    .outputHelp();
  return printed.replace(/^\n+|\s+$/g, "");
}
