import type { Command } from "commander";
import { type Finding, formatFinding, readConfig, validateConfig } from "../../config/index.ts";
import { plain } from "../../listing/index.ts";
import { DEFAULT_CONFIG, Drivers, loadModule } from "../../process/index.ts";
import { CommandFailed } from "../errors.ts";
import type { Session } from "../session.ts";

/** The old command's logger: scripts look for it. */
const LOGGER = "nodepool.cmd.config_validator";

export function defineConfigValidate(command: Command, session: Session): void {
  command
    .option(
      "--strict",
      "also fail for what keeps a launcher from loading the file, and for keys without effect",
    )
    .action(({ strict }: { readonly strict?: boolean }) => validate(session, strict === true));
}

/** Contacts nothing, and does not read the secure file, like the old command (docs/contract/config.md, "Running config-validate"). */
async function validate({ io, machine, options }: Session, strict: boolean): Promise<void> {
  const path = options().config ?? DEFAULT_CONFIG;
  const say = (level: string, text: string) =>
    io.err(`${timestamp(machine.clock.now())} ${level} ${LOGGER}: ${plain(text)}\n`);
  say("INFO", `validating ${path}`);
  const read = await readConfig({ path }, { env: machine.env, drivers: new Drivers(loadModule) });
  const result =
    "unreadable" in read
      ? { exitCode: 1, findings: [read.unreadable] }
      : validateConfig({ ...read.input, strict });
  for (const finding of result.findings) say(levelOf(finding), formatFinding(finding));
  if (result.exitCode !== 0) throw new CommandFailed(result.exitCode);
}

function levelOf({ severity }: Finding): string {
  return severity === "error" ? "ERROR" : "WARNING";
}

/** Local time as Python's logging writes it: `2026-01-31 10:00:00,123`. */
function timestamp(ms: number): string {
  const at = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  const date = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  const time = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${date} ${time},${String(at.getMilliseconds()).padStart(3, "0")}`;
}
