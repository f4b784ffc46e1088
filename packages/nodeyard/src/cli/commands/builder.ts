import { type Command, InvalidArgumentError } from "commander";
import { GRACE_MS, startBuilder, untilStopped } from "../../process/index.ts";
import { CommandFailed } from "../errors.ts";
import { filesOf, logOf, type Session, stateOf } from "../session.ts";

interface BuilderOptions {
  readonly buildWorkers?: number;
  readonly uploadWorkers?: number;
}

export function addBuilder(program: Command, session: Session): void {
  program
    .command("builder")
    .description("run a builder: it makes the diskimages of the configuration and uploads them")
    .option("--build-workers <n>", "builds at once; default: 1", count)
    .option("--upload-workers <n>", "uploads at once; default: 4", count)
    .action((options: BuilderOptions) => builder(session, options));
}

async function builder(session: Session, workers: BuilderOptions): Promise<void> {
  const { machine } = session;
  const log = logOf(session);
  const files = filesOf(session);
  const running = await startBuilder({ stateFolder: stateOf(session), files, ...workers }, machine, log);
  const stopped = untilStopped(machine, log, () => running.close(GRACE_MS));
  log.info({ config: files.path }, "the builder runs");
  const exitCode = await stopped;
  if (exitCode !== 0) throw new CommandFailed(exitCode);
}

function count(text: string): number {
  if (!/^\d+$/.test(text) || Number(text) < 1) throw new InvalidArgumentError("give a number from 1 on");
  return Number(text);
}
