import { runSliverd } from "@nodeyard/process";
import type { Command } from "commander";
import { CommandFailed } from "../errors.ts";
import type { Session } from "../session.ts";
import { addSliverdHosts } from "./sliverd-hosts.ts";
import { addSliverdKeys } from "./sliverd-keys.ts";

/**
 * `nodeyard sliverd`: the sliver manager, what acts in its slivers, and the keys and machines of a launcher. The first part runs
 * the manager's own program, as root, so that its package is needed only on sliver hosts.
 */
export function defineSliverd(sliverd: Command, session: Session): void {
  addRun(sliverd);
  addExec(sliverd);
  for (const [verb, what] of [
    ["freeze", "stop the processes of a sliver of this machine where they are, as root"],
    ["thaw", "let the processes of a frozen sliver go on, as root"],
  ] as const)
    inSliver(sliverd.command(verb), what).action((sliver: string, { config }: InSliver) =>
      ended([`--${verb}`, sliver, "--config", config]),
    );
  inSliver(sliverd.command("snapshot"), "save a sliver of this machine as an image, as root")
    .argument("<image>", "name of the image, for the key `image` of labels")
    .action((sliver: string, image: string, { config }: InSliver) =>
      ended(["--snapshot", sliver, "--config", config, "--", image]),
    );
  sliverd
    .command("forget-snapshot")
    .argument("<image>", "name of an image that `snapshot` made")
    .description("remove a snapshot from this machine, as root; slivers that were made of it stay")
    .option("--config <file>", "configuration of the sliver manager", SETTINGS)
    .action((image: string, { config }: InSliver) => ended(["--forget-snapshot", image, "--config", config]));
  addSliverdKeys(sliverd, session);
  addSliverdHosts(sliverd, session);
}

/** Where `install` puts it. */
const SETTINGS = "/etc/nodeyard-sliver/sliverd.json";

interface RunOptions {
  readonly dismantle?: boolean;
  readonly dryRun?: boolean;
  readonly json?: boolean;
}

/** `sliverd run`: in the foreground, as its unit starts it. */
function addRun(sliverd: Command): void {
  sliverd
    .command("run")
    .argument("[file]", "its configuration", SETTINGS)
    .description("run the sliver manager of this machine, as root")
    .option("--dismantle", "instead: end every sliver and remove everything that slivers put on this machine")
    .option("--dry-run", "with --dismantle: only list what it would remove")
    .option("--json", "with --dismantle: print JSON")
    .action(async (file: string, { dismantle, dryRun, json }: RunOptions) => {
      const words = ["--config", file];
      if (dismantle === true) words.push("--dismantle");
      if (dryRun === true) words.push("--dry-run");
      if (json === true) words.push("--json");
      await ended(words);
    });
}

interface InSliver {
  readonly config: string;
}

/** Arguments of a command that acts on one sliver of this machine. */
function inSliver(command: Command, what: string): Command {
  return command
    .argument("<sliver>", "its name, or the id of its node")
    .description(what)
    .option("--config <file>", "configuration of the sliver manager", SETTINGS);
}

/** `sliverd exec`: each word of the command arrives as it is given. */
function addExec(sliverd: Command): void {
  inSliver(sliverd.command("exec"), "run a command as root of a sliver of this machine, as root")
    .argument(
      "[command...]",
      "after --; default: a shell. The log of its start script is /run/nodeyard-initscript.log",
    )
    .action((sliver: string, command: readonly string[], { config }: InSliver) =>
      ended(["--exec", sliver, "--config", config, "--", ...command]),
    );
}

/** Runs the sliver manager's program with these words; its exit code becomes this command's. */
async function ended(words: readonly string[]): Promise<void> {
  const exitCode = await runSliverd(words);
  if (exitCode !== 0) throw new CommandFailed(exitCode);
}
