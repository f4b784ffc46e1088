import { Argument, type Command } from "commander";
import { COMPLETIONS, type Shell } from "../completion.ts";
import { describe } from "../described.ts";
import type { Session } from "../session.ts";

/** `nodeyard completion`, of a program whose commands are all defined. */
export function defineCompletion(command: Command, { io }: Session): void {
  command
    .addArgument(new Argument("<shell>", "shell that is to complete").choices(Object.keys(COMPLETIONS)))
    .addHelpText(
      "after",
      `
bash: source <(nodeyard completion bash)                                 in ~/.bashrc
zsh:  source <(nodeyard completion zsh)                                  in ~/.zshrc, after compinit
fish: nodeyard completion fish > ~/.config/fish/completions/nodeyard.fish
The Debian package has installed it for all users.`,
    )
    .action((shell: Shell) => io.out(COMPLETIONS[shell](describe(command.parent!))));
}
