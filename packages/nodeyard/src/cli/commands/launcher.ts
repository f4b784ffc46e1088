import type { Command } from "commander";
import { GRACE_MS, startLauncher, untilStopped } from "../../process/index.ts";
import { CommandFailed } from "../errors.ts";
import { filesOf, logOf, type Session, stateOf } from "../session.ts";

export function addLauncher(program: Command, session: Session): void {
  program
    .command("launcher")
    .description("run a launcher on the ZooKeeper of the configuration, beside Zuul and other launchers")
    .action(() => launcher(session));
}

async function launcher(session: Session): Promise<void> {
  const { machine } = session;
  const log = logOf(session);
  const files = filesOf(session);
  const running = await startLauncher({ stateFolder: stateOf(session), files }, machine, log);
  const stopped = untilStopped(machine, log, () => running.close(GRACE_MS));
  log.info({ config: files.path }, "the launcher runs");
  const exitCode = await stopped;
  if (exitCode !== 0) throw new CommandFailed(exitCode);
}
