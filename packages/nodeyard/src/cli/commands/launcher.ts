import type { Command } from "commander";
import { GRACE_MS, startLauncher, untilStopped } from "../../process/index.ts";
import { CommandFailed } from "../errors.ts";
import { filesOf, logOf, type Session, stateOf } from "../session.ts";
import { addWebappOptions, frontWish, type WebappOptions } from "../webapp.ts";

export function addLauncher(program: Command, session: Session): void {
  const command = program
    .command("launcher")
    .description("run a launcher on the ZooKeeper of the configuration, beside Zuul and other launchers");
  addWebappOptions(command, "webapp of the configuration, else 0.0.0.0:8005").action(
    (options: WebappOptions) => launcher(session, options),
  );
}

async function launcher(session: Session, options: WebappOptions): Promise<void> {
  const { machine } = session;
  const log = logOf(session);
  const files = filesOf(session);
  const front = frontWish(options, { configured: "always", socket: true });
  const running = await startLauncher(
    { stateFolder: stateOf(session), files, ...(front && { front }) },
    machine,
    log,
  );
  const stopped = untilStopped(machine, log, () => running.close(GRACE_MS));
  log.info({ config: files.path }, "the launcher runs");
  const exitCode = await stopped;
  if (exitCode !== 0) throw new CommandFailed(exitCode);
}
