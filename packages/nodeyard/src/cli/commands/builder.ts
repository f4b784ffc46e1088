import { type Command, InvalidArgumentError } from "commander";
import { startBuilder, untilStopped } from "../../process/index.ts";
import { CommandFailed } from "../errors.ts";
import { logOf } from "../log.ts";
import { filesOf, type Session, stateOf } from "../session.ts";
import { addWebappOptions, frontWish, type WebappOptions } from "../webapp.ts";

interface BuilderOptions extends WebappOptions {
  readonly buildWorkers?: number;
  readonly uploadWorkers?: number;
}

export function defineBuilder(command: Command, session: Session): void {
  command
    .option("--build-workers <n>", "concurrent builds; default: 1", count)
    .option("--upload-workers <n>", "concurrent uploads; default: 4", count);
  addWebappOptions(command, "nowhere").action((options: BuilderOptions) => builder(session, options));
}

async function builder(session: Session, options: BuilderOptions): Promise<void> {
  const { machine } = session;
  const log = logOf(session);
  const files = filesOf(session);
  const { buildWorkers, uploadWorkers } = options;
  const front = frontWish(options, { configured: "never", socket: false });
  const wish = {
    stateFolder: stateOf(session),
    files,
    ...(front && { front }),
    ...(buildWorkers === undefined ? {} : { buildWorkers }),
    ...(uploadWorkers === undefined ? {} : { uploadWorkers }),
  };
  const exitCode = await untilStopped(machine, log, async (stopping) => {
    const running = await startBuilder(wish, machine, log, stopping);
    if (!stopping.aborted) log.info({ config: files.path }, "the builder runs");
    return running;
  });
  if (exitCode !== 0) throw new CommandFailed(exitCode);
}

function count(text: string): number {
  if (!/^\d+$/.test(text) || Number(text) < 1) throw new InvalidArgumentError("give a number, 1 or more");
  return Number(text);
}
