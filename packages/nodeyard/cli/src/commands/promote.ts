import { startPromotion, takeBack, untilStopped } from "@nodeyard/process";
import { defined } from "@nodeyard/runtime";
import type { Command } from "commander";
import { CommandFailed, UsageError } from "../errors.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, stateOf } from "../session.ts";
import { addListenOptions, type ListenOptions, tcpOf } from "./listen-options.ts";

/** Options of `promote`. */
interface PromoteOptions extends ListenOptions {
  readonly to?: string;
  readonly data?: readonly string[];
  readonly back?: true;
}

/** `nodeyard promote` */
export function definePromote(command: Command, session: Session): void {
  addListenOptions(
    command
      .option("--to <hosts>", "HOST:PORT,... of the ZooKeeper; default: zookeeper-servers of -c")
      .option(
        "--data <folder...>",
        "its dataDir: empty to move there; with --back dataLogDir, too, if it is another",
      )
      .option("--back", "make what a stopped ZooKeeper has the tree of the state folder"),
  ).action(async ({ to, data, back, ...options }: PromoteOptions) => {
    const { machine, io } = session;
    const stateFolder = stateOf(session);
    const files = session.options().config === undefined ? undefined : filesOf(session);
    const named = defined({ to, files });
    if (back === true) {
      if (data === undefined)
        throw new UsageError("--back needs --data FOLDER: the dataDir of the ZooKeeper");
      const { znodes, sessions } = await takeBack({ stateFolder, ...named }, data, machine);
      io.out(`${znodes} znodes and ${sessions} sessions are in ${stateFolder}; start it with: nodeyard up\n`);
      return;
    }
    if (data !== undefined && data.length > 1) throw new UsageError("a tree moves to one --data FOLDER");
    const log = logOf(session);
    const listen = tcpOf(options);
    const wish = { stateFolder, ...named, ...defined({ data: data?.[0], listen }) };
    const exitCode = await untilStopped(machine, log, (stopping) =>
      startPromotion(wish, machine, log, stopping),
    ).finally(() => log.flush());
    if (exitCode !== 0) throw new CommandFailed(exitCode);
  });
}
