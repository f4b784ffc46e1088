import type { Completed, Described, DescribedOption } from "./described.ts";

/**
 * Scripts that complete commands, options and their values. They contain all words, because starting the program for each key would be
 * too slow for typing.
 */
export const COMPLETIONS = { bash, zsh, fish } as const;
/** A shell that completes commands. */
export type Shell = keyof typeof COMPLETIONS;

/** Marks in the script of bash, where a word of this text stands for "complete as files", "as folders" and "not at all". */
const FILES = "@files";
const FOLDERS = "@folders";
const ANYTHING = "@anything";

/** All commands, the program first. */
function all(command: Described): readonly Described[] {
  return [command, ...command.commands.flatMap(all)];
}

/** As one word of a shell; no shell looks into single quotes but fish, for backslashes. */
function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Options of the program that a command takes, too: it may have others of the same names. */
function inherited(program: Described, { options }: Described): readonly DescribedOption[] {
  const own = new Set(options.flatMap(({ flags }) => flags));
  return program.options.filter(({ flags }) => !flags.some((flag) => own.has(flag)));
}

/** Names of the commands directly beneath one. */
function names(command: Described): readonly string[] {
  return command.commands.map(({ path }) => path.at(-1)!);
}

/** Everything is matched with `command path:word`, since bash has no nested tables. */
function bash(program: Described): string {
  const kind = (value: Completed) => {
    if (typeof value === "object") return value.join(" ");
    return value === "file" ? FILES : value === "folder" ? FOLDERS : ANYTHING;
  };
  // The script walks the words before the cursor once: `at` is the command so far, `kind` what an option's value completes to.
  const commands = all(program);
  // Pairs of a command and a word that leads to one of its inner commands.
  const steps = commands
    .slice(1)
    .map(({ path }) => quote(`${path.slice(0, -1).join(" ")}:${path.at(-1)}`))
    .join("|");
  const values = commands.toReversed().flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) => {
      if (value === null) return [];
      // Options of the program come last and apply to every command.
      const at = path.length === 0 ? "*" : quote(path.join(" "));
      return `        ${flags.map((flag) => `${at}:${flag}`).join("|")}) kind=${quote(kind(value))} ;;\n`;
    }),
  );
  // What may follow each command: its options, its inner commands, and what its first argument completes to.
  const offers = commands.map((command) => {
    const options = [...command.options, ...inherited(program, command)].flatMap(({ flags }) => flags);
    const words = [...names(command), ...command.arguments.slice(0, 1).map(({ value }) => kind(value))];
    return `    ${quote(command.path.join(" "))}) options=${quote(options.join(" "))} kind=\${kind:-${quote(words.join(" "))}} ;;\n`;
  });
  return `# Completion of nodeyard for bash. Made by "nodeyard completion bash".
_nodeyard() {
  local current=\${COMP_WORDS[COMP_CWORD]} at='' kind='' options='' word
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    # bash makes a word of the = in --option=value.
    if [[ $word == = ]]; then continue
    elif [[ $kind ]]; then kind=''
    elif [[ $word == -- ]]; then compopt -o default; return
    else
      case "$at:$word" in
        ${steps}) at="\${at:+$at }$word" ;;
${values.join("")}      esac
    fi
  done
  [[ $current == = ]] && current=''
  local value=$kind
  case $at in
${offers.join("")}  esac
  if [[ $current == -* && ! $value ]]; then kind=$options
  elif [[ ! $kind ]]; then kind=$options; fi
  case $kind in
    ${ANYTHING}) ;;
    ${FILES}) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current") ;;
    ${FOLDERS}) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$kind" -- "$current") ;;
  esac
}
complete -F _nodeyard nodeyard
`;
}

/** One function per command, called by the one above it, as zsh's own completions are written (zshcompsys(1), "_arguments"). */
function zsh(program: Described): string {
  const action = (value: Completed) => {
    if (typeof value === "object") return `(${value.join(" ")})`;
    return value === "file" ? "_files" : value === "folder" ? "_files -/" : " ";
  };
  const plain = (text: string) => text.replaceAll(/[\\[\]:]/g, "\\$&");
  // `*` in front: an option may be repeated, and is offered again.
  const option = ({ flags, text, value }: DescribedOption) =>
    flags.map((flag) => {
      const takes = value === null ? "" : `:${value === undefined ? "value" : "word"}:${action(value)}`;
      const name = value !== null && flag.startsWith("--") ? `${flag}=` : flag;
      return quote(`*${name}[${plain(text)}]${takes}`);
    });
  const functions = all(program).map((command) => {
    const specs = [...command.options, ...inherited(program, command)].flatMap(option);
    const described = command.commands.map(({ path, summary }) => `${path.at(-1)}:${plain(summary)}`);
    const inner =
      described.length === 0
        ? command.arguments.map(({ name, repeats, value }, at) =>
            quote(`${repeats ? "*" : at + 1}:${name}:${action(value)}`),
          )
        : [quote("1: :->command"), quote("*:: :->rest")];
    const name = ["_nodeyard", ...command.path].join("_");
    const rest = `
  case $state in
    command) local -a commands=(${described.map(quote).join(" ")}); _describe command commands ;;
    rest) (( $+functions[${name}_$line[1]] )) && ${name}_$line[1] ;;
  esac`;
    return `${name}() {
  local curcontext=$curcontext state line
  _arguments -C ${described.length === 0 ? "" : "-A '-*' "}${[...specs, ...inner].join(" ")}${described.length === 0 ? "" : rest}
}
`;
  });
  return `#compdef nodeyard
# Completion of nodeyard for zsh. Made by "nodeyard completion zsh".
${functions.join("")}# Loaded from a folder of fpath it is the function itself, else it is registered with the shell.
if [[ $funcstack[1] == _nodeyard ]]; then _nodeyard "$@"; else compdef _nodeyard nodeyard; fi
`;
}

/**
 * One line per option and word, each with a condition: fish has no notion of inner commands. `__nodeyard_at` finds the command so
 * far.
 */
function fish(program: Described): string {
  const word = (text: string) => `'${text.replaceAll(/[\\']/g, "\\$&")}'`;
  const values = (value: Completed | null) => {
    if (value === null) return "";
    if (typeof value === "object") return ` -x -a ${word(value.join(" "))}`;
    if (value === "file") return " -r -F";
    return value === "folder" ? " -x -a '(__fish_complete_directories)'" : " -x";
  };
  const commands = all(program);
  const lines = commands.flatMap((command) => {
    const at = `complete -c nodeyard -n ${word(`__nodeyard_at ${word(command.path.join(" "))}`)}`;
    const options = [...command.options, ...inherited(program, command)].map(({ flags, text, value }) => {
      const each = flags.map((flag) =>
        flag.startsWith("--") ? `-l ${flag.slice(2)}` : `-s ${flag.slice(1)}`,
      );
      return `${at} ${each.join(" ")}${values(value)} -d ${word(text)}`;
    });
    const inner = command.commands.map(
      ({ path, summary }) => `${at} -a ${word(path.at(-1)!)} -d ${word(summary)}`,
    );
    const first = command.arguments[0]?.value;
    return [
      ...options,
      ...inner,
      ...(first === undefined ? [] : [`${at}${values(first).replace(" -r", "").replace(" -x", "")}`]),
    ];
  });
  // The word after one of these is its value, not a command.
  const valued = program.options.filter(({ value }) => value !== null).flatMap(({ flags }) => flags);
  return `# Completion of nodeyard for fish. Made by "nodeyard completion fish".
function __nodeyard_at --argument-names wanted
    set -l at ''
    set -l skip
    for word in (commandline -opc)[2..-1]
        if set -q skip[1]
            set -e skip
        else if contains -- $word ${valued.join(" ")}
            set skip 1
        else if contains -- (string trim "$at $word") ${commands
          .slice(1)
          .map(({ path }) => word(path.join(" ")))
          .join(" ")}
            set at (string trim "$at $word")
        end
    end
    test "$at" = "$wanted"
end
complete -c nodeyard -f
${lines.join("\n")}
`;
}
