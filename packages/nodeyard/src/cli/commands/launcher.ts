import type { Command } from "commander";
import { startLauncher, untilStopped } from "../../process/index.ts";
import { CommandFailed } from "../errors.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, stateOf } from "../session.ts";
import { addWebappOptions, frontWish, type WebappOptions } from "../webapp.ts";

export function defineLauncher(command: Command, session: Session): void {
  addWebappOptions(command, "webapp of the configuration, else 0.0.0.0:8005").action(
    (options: WebappOptions) => launcher(session, options),
  );
}

async function launcher(session: Session, options: WebappOptions): Promise<void> {
  const { machine } = session;
  const log = logOf(session);
  const files = filesOf(session);
  const front = frontWish(options, { configured: "always", socket: true });
  const wish = { stateFolder: stateOf(session), files, ...(front && { front }) };
  const exitCode = await untilStopped(machine, log, async (stopping) => {
    const running = await startLauncher(wish, machine, log, stopping);
    if (!stopping.aborted) log.info({ config: files.path }, "the launcher runs");
    return running;
  });
  if (exitCode !== 0) throw new CommandFailed(exitCode);
}
