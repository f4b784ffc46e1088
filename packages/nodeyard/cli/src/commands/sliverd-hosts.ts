import { plain } from "@nodeyard/operations/listing";
import { readText } from "@nodeyard/process";
import { deadline, defined } from "@nodeyard/runtime";
import type { Bundle, Enrolled, EnrolWish, SshLogin } from "@nodeyard/sliver-installer";
import { readSigningKeys, sliverPaths } from "@nodeyard/sliver-protocol";
import { type Command, Option } from "commander";
import { parseDuration } from "../arguments.ts";
import { CommandError, UsageError } from "../errors.ts";
import { printJson } from "../listing.ts";
import { type Session, stateOf } from "../session.ts";
import { controlKeyOf, makeKeys } from "./sliverd-keys.ts";
import { addSliverdStatus, CONTROL_SOCKET, operator } from "./sliverd-status.ts";

/** How a machine is reached, and what is printed. `timeout` is a duration as people write it, for the error's text. */
interface LoginOptions {
  readonly port?: string;
  readonly identity?: string;
  readonly sshConfig?: string;
  readonly dryRun?: boolean;
  readonly json?: boolean;
  readonly timeout: string;
}

/** What the machine is to become. `node`: its name in documents; absent: its host name. */
interface WishOptions {
  readonly node?: string;
  readonly backEnd: "account" | "container";
  readonly sliverdConfig?: string;
}

/** What is copied to it. Absent: the programs of this installation and the Node.js that runs here. */
interface ProgramOptions {
  readonly bundle?: string;
  readonly nodeRuntime?: string;
  readonly platform: string;
}

interface InstallOptions extends LoginOptions, WishOptions, ProgramOptions {
  readonly local?: boolean;
  readonly installPackages?: boolean;
}

interface UninstallOptions extends LoginOptions, ProgramOptions {
  readonly local?: boolean;
}

/** `sliverd install`, `status`, `uninstall` and `settings`. All work is in the driver's package; here are only words. */
export function addSliverdHosts(sliverd: Command, session: Session): void {
  programs(wishes(login(sliverd.command("install"))))
    .description(
      "turn a machine into a sliver host, over SSH with your rights there; running it again changes nothing",
    )
    .option("--local", "this machine, as root; creates the launcher's keys where there are none")
    .option("--install-packages", "install packages that are missing there; without it they are only listed")
    .action((host: string | undefined, options: InstallOptions) => install(session, host, options));
  addSliverdStatus(
    way(sliverd.command("status"), "1m", OR_HERE),
    session,
    loginOf,
    (options: LoginOptions, work) => within(session, options, work),
  );
  programs(login(sliverd.command("uninstall")))
    .description(
      "end a machine's slivers and remove everything that install put there, even if it was interrupted",
    )
    .option("--local", "this machine, as root")
    .action((host: string | undefined, options: UninstallOptions) => uninstall(session, host, options));
  wishes(sliverd.command("settings"))
    .description("print the settings that the image element nodeyard-sliverd needs; none is secret")
    .action(async (options: WishOptions) => {
      session.io.out(`${await settingsOf(session, options, { installPackages: false, image: true })}\n`);
    });
}

type Operator = Awaited<ReturnType<typeof operator>>;

/** For `install` and `uninstall`; left out with --local. */
const HOST = { name: "[host]", description: "[USER@]HOST, as for ssh" };
/** For `status`, which asks a sliver manager and nothing else of its machine. */
const OR_HERE = {
  name: "[host]",
  description: `[USER@]HOST, as for ssh, or the path of the socket of this machine's sliver manager; default: ${CONTROL_SOCKET}`,
};

/** How a machine is reached. */
function way(command: Command, timeout: string, host = HOST): Command {
  return command
    .argument(host.name, host.description)
    .option("--port <number>", "port of its SSH server")
    .option("--ssh-config <file>", "instead of your own ssh configuration")
    .option("--timeout <time>", "give up after this time", timeout);
}

/** Options of commands that change a machine: they log in with the operator's own key, and can list what they would do. */
function login(command: Command): Command {
  // Time to copy the programs with a Node.js binary over a slow line, and to install packages.
  return way(command, "15m")
    .option("--identity <file>", "private key to log in with")
    .option("--dry-run", "only list what would change")
    .option("--json", "an object on stdout: node, changes, missingPackages, notes");
}

/** Options that say what the machine is to become; `settings` prints the same for an image. */
function wishes(command: Command): Command {
  return command
    .option("--node <id>", "name of the machine in documents; default: its host name")
    .addOption(
      new Option("--back-end <name>", "what slivers see: the machine's programs, or an image's")
        .choices(["account", "container"])
        .default("account"),
    )
    .option("--sliverd-config <file>", "JSON file whose keys are copied into sliverd.json there");
}

/** Options that say what is copied. `--platform` matters only for a runtime of another architecture. */
function programs(command: Command): Command {
  return command
    .option("--bundle <folder>", "programs to copy; default: those of this installation")
    .option("--node-runtime <file>", "Node.js binary for the machine, if this machine's does not run there")
    .option("--platform <name>", "output of `uname -sm` on the machine, for --node-runtime", "Linux x86_64");
}

/** The programs to copy. Throws what is wrong with them. */
function bundleOf(
  { openBundle }: Operator,
  { bundle: folder, nodeRuntime, platform }: ProgramOptions,
): Bundle {
  return openBundle({
    folder,
    runtime: nodeRuntime === undefined ? undefined : { path: nodeRuntime, platform },
  });
}

/** The machine to work on: exactly one of a host and `--local` is needed. Throws UsageError. */
function remoteOf(tools: Operator, host: string | undefined, options: InstallOptions | UninstallOptions) {
  // Neither would leave it open which machine is changed, and both name two.
  if ((host === undefined) !== (options.local === true))
    throw new UsageError("which machine? name a host, or give --local for this one");
  return host === undefined ? tools.localRemote : tools.sshRemote(loginOf(host, options));
}

/** Needs no keys: also a machine can be cleaned whose launcher is gone. */
function uninstall(session: Session, host: string | undefined, options: UninstallOptions): Promise<void> {
  return within(session, options, async (signal) => {
    const tools = await operator();
    const remote = remoteOf(tools, host, options);
    const dryRun = options.dryRun === true;
    const bundle = () => bundleOf(tools, options);
    tell(session, await tools.uninstallSliverd({ remote, bundle, dryRun, signal }), options);
  });
}

/** Idempotent: what is right already is not changed, and `changes` is empty then. */
function install(session: Session, host: string | undefined, options: InstallOptions): Promise<void> {
  return within(session, options, async (signal) => {
    const { installPackages = false } = options;
    const tools = await operator();
    const remote = remoteOf(tools, host, options);
    // On one machine, launcher and host share the state folder, so that its keys can be made here. For another host they must
    // exist: all launchers need the same ones.
    if (options.local === true && options.dryRun !== true) await makeKeys(session, true);
    const settings = await settingsOf(session, options, { installPackages });
    const enrolled = await tools.installSliverd({
      remote,
      bundle: bundleOf(tools, options),
      settings,
      controlKey: sliverPaths(stateOf(session)).controlKey,
      dryRun: options.dryRun === true,
      signal,
    });
    tell(session, enrolled, options);
    if (options.local === true && options.json !== true && options.dryRun !== true)
      session.io.out(providerText(enrolled.node, sliverPaths(stateOf(session)).signingKeys));
    // A dry run must not succeed where the machine lacks packages that the installation would not install.
    if (options.dryRun === true && enrolled.missingPackages.length > 0)
      throw new CommandError(
        "cli.missing_packages",
        `packages are missing on the host: ${enrolled.missingPackages.join(" ")}; install them, or add --install-packages`,
      );
  });
}

/** What the launcher's configuration needs, to be copied. Amounts are examples, MiB. */
function providerText(node: string, signingKeys: string): string {
  return `in nodepool.yaml:
labels:
  - name: small
providers:
  - name: ${plain(node)}
    driver: sliver
    signing-keys: ${signingKeys}
    machines:
      - { name: ${plain(node)}, socket: ${CONTROL_SOCKET} }
    pools:
      - name: main
        labels:
          - { name: small, memory: 2048, disk: 4096 }
`;
}

/** The document by which a machine enrols: public keys and the wish, nothing secret. Rejects when the launcher has no keys yet. */
async function settingsOf(
  session: Session,
  { node, backEnd, sliverdConfig }: WishOptions,
  more: Pick<EnrolWish, "installPackages" | "image">,
): Promise<string> {
  const places = sliverPaths(stateOf(session));
  const wish: EnrolWish = {
    ...defined({ node }),
    backEnd,
    sliverd: sliverdConfig === undefined ? {} : jsonObject(sliverdConfig),
    ...more,
  };
  const { enrolSettings } = await operator();
  return enrolSettings(wish, readSigningKeys(places.signingKeys), controlKeyOf(places));
}

/** A JSON object in a file that the user named. Throws UsageError. */
function jsonObject(path: string): Record<string, unknown> {
  const text = readText(path, "parts of sliverd.json");
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new UsageError(`${path} holds no JSON object`);
}

/** The login for ssh. Throws UsageError for a port that is none. */
function loginOf(host: string, { port, identity, sshConfig }: LoginOptions): SshLogin {
  if (port !== undefined && !(Number(port) >= 1 && Number(port) <= 65_535))
    throw new UsageError(`--port ${JSON.stringify(port)} is not a port`);
  return {
    destination: host,
    ...(port === undefined ? {} : { port: Number(port) }),
    ...defined({ identity, configFile: sshConfig }),
  };
}

/** Runs `work` with a signal that aborts after `--timeout`; rejects with CommandError then. */
async function within(
  { machine }: Session,
  { timeout }: { readonly timeout: string },
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const late = () => new CommandError("cli.too_late", `it took longer than ${timeout}; see --timeout`);
  using limit = deadline(machine.clock, parseDuration(timeout), late);
  await work(limit.signal);
}

/** What was, or would be, changed. Texts come from the machine, so they are printed without control characters. */
function tell({ io }: Session, enrolled: Enrolled, { dryRun, json }: LoginOptions): void {
  if (json === true) return printJson(io, enrolled);
  const { node, changes, notes } = enrolled;
  for (const change of changes) io.out(`${dryRun === true ? "would " : ""}${plain(change)}\n`);
  for (const note of notes) io.err(`nodeyard: ${plain(note)}\n`);
  const unchanged = changes.length === 0 ? "; nothing had to be changed" : "";
  if (dryRun !== true && node !== "") io.out(`node ${plain(node)}${unchanged}\n`);
}
