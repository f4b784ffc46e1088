import {
  type FrontWish,
  HTTP_SOCKET,
  readText,
  type Stoppable,
  startBuilder,
  startConnect,
  startLauncher,
  startUp,
  untilStopped,
} from "@nodeyard/process";
import { defined } from "@nodeyard/runtime";
import type { ProcessLog } from "@nodeyard/telemetry";
import { type Command, InvalidArgumentError } from "commander";
import { parseAddress } from "../arguments.ts";
import { CommandFailed, UsageError } from "../errors.ts";
import { logOf } from "../log.ts";
import { addOldOptions, type OldOptions, oldDaemon } from "../old-daemon.ts";
import { filesOf, type Session, stateOf } from "../session.ts";
import { linkOf } from "./dashboard.ts";
import { addListenOptions, type ListenOptions, tcpOf } from "./listen-options.ts";

/** Options of `up`. */
interface UpOptions extends WebappOptions, ListenOptions {
  /** Path of connect.yaml. */
  readonly connect?: string;
}

/** `nodeyard up` */
export function defineUp(command: Command, session: Session): void {
  addListenOptions(command).option(
    "--connect <file>",
    "also run the connectors of this file (connect.yaml), on this pool",
  );
  addWebappOptions(
    command,
    "webapp of the configuration if it has one; always: http.sock in the state folder",
  ).action((options: UpOptions) => {
    const listen = tcpOf(options);
    return run(session, options, { configured: "named", socket: true }, async (wish, log, stopping) => {
      const up = await startUp({ ...wish, ...(listen && { listen }) }, session.machine, log, stopping);
      const running = options.connect === undefined ? up : await connected(up, options.connect, session, log);
      const { addresses, label } = up;
      const facts = { state: wish.stateFolder, addresses };
      return { running, facts, text: "Nodeyard is up", after: () => showNext(session, label) };
    });
  });
}

/** A Nodeyard with connectors, which end before it. When they cannot be started, it is closed again. */
async function connected(up: Stoppable, path: string, session: Session, log: ProcessLog): Promise<Stoppable> {
  const socket = `${stateOf(session)}/${HTTP_SOCKET}`;
  const connectors = await startConnect({ path, socket }, session.machine, log).catch(
    async (error: unknown) => {
      await up.close(0);
      throw error;
    },
  );
  return {
    ...up,
    async close(graceMs) {
      // Both within the time of one, and the pool in any case.
      await connectors.close(graceMs / 2).finally(() => up.close(graceMs / 2));
    },
  };
}

/** `nodeyard connect`: `-c` names its file. */
export function defineConnect(command: Command, session: Session): void {
  command
    .addHelpText(
      "after",
      "\nThe file is connect.yaml of -c, else /etc/nodeyard/connect.yaml. It has the address of the pool, and a section for each system.",
    )
    .action(async () => {
      const log = logOf(session);
      const { config: path = "/etc/nodeyard/connect.yaml" } = session.options();
      const exitCode = await untilStopped(session.machine, log, async () => {
        const running = await startConnect({ path }, session.machine, log);
        log.info({ file: path }, "the connectors run");
        return running;
      }).finally(() => log.flush());
      if (exitCode !== 0) throw new CommandFailed(exitCode);
    });
}

/**
 * Prints what to type next, and the page's address with a one-time link, on a terminal only: a log would keep the link. No page is no reason
 * to stop: without a TCP address there is none. `label`: one that the configuration has, if it has any.
 */
async function showNext(session: Session, label = "LABEL"): Promise<void> {
  const { io, machine, options } = session;
  if (!io.isTerminal) return;
  const nodeyard = `nodeyard${options().state === undefined ? "" : ` --state ${stateOf(session)}`}`;
  const link = await linkOf(stateOf(session), machine.hostname).catch(() => undefined);
  io.out(`\nIn another terminal:
  get a node         ${nodeyard} request ${label} --wait
  give it back       ${nodeyard} release LEASE
  see all nodes      ${nodeyard} list
  see what is wrong  ${nodeyard} doctor
${link === undefined ? "" : `The page, by a link that is good once: ${link.url}\n`}Ctrl-C stops it.\n`);
}

/** `nodeyard launcher`: on ZooKeeper, or as a client of a Nodeyard on the same state folder. */
export function defineLauncher(command: Command, session: Session): void {
  addWebappOptions(addOldOptions(command), "webapp of the configuration, else 0.0.0.0:8005").action(
    (options: WebappOptions) =>
      run(session, options, { configured: "always", socket: true }, async (wish, log, stopping) => {
        const running = await startLauncher(wish, session.machine, log, stopping);
        return { running, facts: { config: wish.files.path }, text: "the launcher runs" };
      }),
  );
}

/** Absent numbers: the builder's own defaults. */
interface BuilderOptions extends WebappOptions {
  readonly buildWorkers?: number;
  readonly uploadWorkers?: number;
}

/** `nodeyard builder` */
export function defineBuilder(command: Command, session: Session): void {
  addOldOptions(command)
    .option("--build-workers <n>", "concurrent builds; default: 1", count)
    .option("--upload-workers <n>", "concurrent uploads; default: 4", count);
  addWebappOptions(command, "nowhere").action(
    ({ buildWorkers, uploadWorkers, ...options }: BuilderOptions) => {
      // Absent rather than undefined: the builder's own defaults hold then.
      const workers = { ...(buildWorkers && { buildWorkers }), ...(uploadWorkers && { uploadWorkers }) };
      return run(session, options, { configured: "never", socket: false }, async (wish, log, stopping) => {
        const running = await startBuilder({ ...wish, ...workers }, session.machine, log, stopping);
        return { running, facts: { config: wish.files.path }, text: "the builder runs" };
      });
    },
  );
}

/** What every daemon is started with. */
type DaemonWish = Pick<Parameters<typeof startLauncher>[0], "stateFolder" | "files" | "front">;

/**
 * Runs a daemon until it is stopped, and logs `text` when it is up; `after` follows it. Rejects with CommandFailed unless it ended in good order, and
 * with the error of the start. A start that a signal aborts is a stop in good order.
 */
async function run(
  session: Session,
  options: WebappOptions,
  unless: Pick<FrontWish, "configured" | "socket">,
  start: (
    wish: DaemonWish,
    log: ProcessLog,
    stopping: AbortSignal,
  ) => Promise<{
    readonly running: Stoppable;
    readonly facts: object;
    readonly text: string;
    readonly after?: () => Promise<void>;
  }>,
): Promise<void> {
  // First: a pid file of a process that runs ends the command before anything is opened.
  const old = oldDaemon(session, options);
  try {
    const log = logOf(old.session);
    for (const warning of old.warnings) log.warn({}, warning);
    const front = frontWish(options, unless);
    const wish = { stateFolder: stateOf(session), files: filesOf(session), ...(front && { front }) };
    const exitCode = await untilStopped(session.machine, log, async (stopping) => {
      const { running, facts, text, after } = await start(wish, log, stopping);
      if (stopping.aborted) return running;
      log.info(facts, text);
      await log.flush();
      await after?.();
      return running;
      // The log writes in the background; without this the lines that say why a daemon ended could be lost.
    }).finally(() => log.flush());
    if (exitCode !== 0) throw new CommandFailed(exitCode);
  } finally {
    old.end();
  }
}

function count(text: string): number {
  if (!/^\d+$/.test(text) || Number(text) < 1) throw new InvalidArgumentError("give a number, 1 or more");
  return Number(text);
}

/** Options of every daemon's web interface, as commander has them. */
interface WebappOptions extends OldOptions {
  /** False: --no-webapp. */
  readonly webapp?: { readonly host: string; readonly port: number } | false;
  /** Path of the file with the token, never the token: arguments of a process are readable by everybody on the machine. */
  readonly webappToken?: string;
}

/** Characters. Shorter ones could be guessed: 16 hexadecimal digits are 64 bits. */
const MIN_TOKEN = 16;

/** `unless`: where it listens without the option, for the help. */
function addWebappOptions(command: Command, unless: string): Command {
  return command
    .option(
      "--webapp <host:port>",
      `address of the HTTP interface: lists, health and metrics; default: ${unless}`,
      (text) => parseAddress(text, "--webapp"),
    )
    .option("--no-webapp", "do not open the HTTP interface")
    .option(
      "--webapp-token <file>",
      "file with the token that clients send as `Authorization: Bearer TOKEN`",
    );
}

/**
 * Where the process can be looked at, as the command line wants it; undefined: nowhere, by --no-webapp. Throws UsageError for a
 * token that is none.
 */
function frontWish(
  { webapp, webappToken }: WebappOptions,
  unless: Pick<FrontWish, "configured" | "socket">,
): FrontWish | undefined {
  if (webapp === false) return undefined;
  const token = webappToken === undefined ? {} : { token: tokenIn(webappToken) };
  return { ...unless, ...defined({ tcp: webapp }), ...token };
}

/** The token in a file: one word, so that a file with something else is not taken for one. Throws UsageError. */
function tokenIn(file: string): string {
  const token = readText(file, "the token").trim();
  if (token.length < MIN_TOKEN || /\s/.test(token))
    throw new UsageError(
      `${file} holds no token: one word of ${MIN_TOKEN} characters or more; make one with "openssl rand -hex 16"`,
    );
  return token;
}
