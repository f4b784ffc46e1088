import { type Config, formatFinding, readConfig, validateConfig } from "@nodeyard/config";
import { type OperationHandles, readStandings, registeredPools } from "@nodeyard/operations";
import { needAttention, plain, standingText } from "@nodeyard/operations/listing";
import {
  anyDriver,
  askSocket,
  CONFIG_PLACES,
  canListen,
  connectsTo,
  Drivers,
  defaultConfig,
  examineCertificates,
  fileExists,
  freeSpace,
  HTTP_SOCKET,
  isFolder,
  isLive,
  isSocket,
  loadModule,
  openConfig,
  surveyLeaks,
} from "@nodeyard/process";
import { counted, messageOf } from "@nodeyard/runtime";
import { readSigningKeys, sliverPaths } from "@nodeyard/sliver-protocol";
import type { Command } from "commander";
import { CommandFailed } from "../errors.ts";
import { printJson } from "../listing.ts";
import { logOf } from "../log.ts";
import { filesOf, placeOf, type Session, stateOf, withTree } from "../session.ts";

/** The result of one check, in the order of the checks: each is a line, and an object of `--json`. */
interface Diagnosis {
  readonly check: string;
  readonly ok: boolean;
  /** The finding; for a problem with the remedy. */
  readonly text: string;
}

/** Resolves with what was found right; rejects with what is wrong and what to do. */
type Look = () => Promise<string>;

/** From this difference on, deletion by age is suspended (docs/design/time.md); milliseconds. */
const MAX_SKEW_MS = 30_000;
/** A tree that cannot be written stops everything, so both have to be left: bytes for small disks, the share for large ones. */
const MIN_FREE_BYTES = 512 * 1024 * 1024;
const MIN_FREE_SHARE = 0.02;

/** `nodeyard doctor`: each check is printed as soon as it has ended; exit code 1 if one found something wrong. */
export function defineDoctor(command: Command, session: Session): void {
  command
    .option("--json", "an array of objects on stdout: check, ok, text")
    .addHelpText(
      "after",
      "\nLooks at configuration, disk, images-dir, process, certificates and keys, ports, tree, clock, launchers, what members say of providers, hosts, labels, images, themselves and sliver machines, and clouds. Each line is ok, or says what to\ndo; exit code 1 if one is not.  In the tree it makes one znode, which it deletes at once.",
    )
    .action(async ({ json }: { readonly json?: boolean }) => {
      const found: Diagnosis[] = [];
      const look = async (check: string, at: Look) => {
        const one = await at().then(
          (text) => ({ check, ok: true, text }),
          (error: unknown) => ({ check, ok: false, text: messageOf(error) }),
        );
        found.push(one);
        if (json !== true)
          session.io.out(`${one.ok ? "ok    " : "WRONG "} ${check.padEnd(14)} ${plain(one.text)}\n`);
        return one.ok;
      };
      await lookAtMachine(session, look);
      if (json === true) printJson(session.io, found);
      if (found.some(({ ok }) => !ok)) throw new CommandFailed(1);
    });
}

/**
 * From the machine outwards: configuration, disk, process, keys, ports, then the tree, and what needs it. A check whose subject
 * does not exist is left out: a machine without a configuration may only run commands. Without a tree the rest could only repeat
 * that.
 */
async function lookAtMachine(
  session: Session,
  look: (check: string, at: Look) => Promise<boolean>,
): Promise<void> {
  const state = stateOf(session);
  const isNamed = placeOf(session).files !== undefined;
  const hasConfig = isNamed || fileExists(defaultConfig());
  if (!isNamed)
    await look(
      "config place",
      async () => `${CONFIG_PLACES.map(statusOf).join(", then ")}; -c names another`,
    );
  // Clouds are asked by this configuration, so only when it can be loaded as a whole.
  const isRight = hasConfig && (await look("configuration", () => configuration(session)));
  if (fileExists(state)) await look("disk", () => disk(state));
  const socket = `${state}/${HTTP_SOCKET}`;
  if (fileExists(socket)) await look("process", () => daemon(socket));
  // Of a configuration with a mistake elsewhere, too.
  const config = hasConfig ? await configOf(session) : undefined;
  const images = config?.builder.imagesDir ?? null;
  // Launchers of other machines have the same file, and no such folder.
  if (images !== null) await look("images-dir", () => (isFolder(images) ? disk(images) : absent(images)));
  const held = keysOf(config, state, session.machine.clock.now());
  if (held.length > 0) await look("keys", () => all(held));
  const ports = portsOf(config, fileExists(socket));
  if (ports.length > 0) await look("ports", () => all(ports));
  const inTree =
    (at: (handles: OperationHandles) => Promise<string>): Look =>
    () =>
      withTree(session, at);
  const isThere = await look(
    "tree",
    inTree(async () => "connected"),
  );
  if (!isThere) return;
  await look("clock", inTree(clock));
  await look("launchers", inTree(launchers));
  const standings = await withTree(session, readStandings);
  const wrong = needAttention(standings);
  // A line each: who looks for one thing finds it.
  for (const one of wrong) await look(one.kind, () => Promise.reject(new Error(standingText(one))));
  if (wrong.length === 0)
    await look("standings", async () => `${counted(standings.length, "thing")}, none needs attention`);
  if (isRight)
    await look(
      "clouds",
      inTree((handles) => clouds(session, handles)),
    );
}

/** A place of configurations, and whether the file there counts. */
function statusOf(path: string): string {
  return `${path} (${!fileExists(path) ? "not there" : path === defaultConfig() ? "used" : "not used"})`;
}

/** Strict: warnings of the validator are errors of a launcher that is to load the file. The first is shown, the rest counted. */
async function configuration(session: Session): Promise<string> {
  const files = filesOf(session);
  const read = await readConfig(files, { env: session.machine.env, drivers: new Drivers(loadModule) });
  if ("unreadable" in read) throw new Error(formatFinding(read.unreadable));
  const { exitCode, findings } = validateConfig({ ...read.input, strict: true });
  const [first, ...others] = findings;
  if (exitCode === 0) return files.path;
  const more = others.length === 0 ? "" : `; and ${others.length} more`;
  throw new Error(
    `${first === undefined ? files.path : formatFinding(first)}${more}: nodeyard -c ${files.path} config-validate --strict`,
  );
}

/** Rejects with everything that is wrong, when something is. */
async function all(looks: readonly Look[]): Promise<string> {
  const ended = await Promise.allSettled(looks.map((look) => look()));
  const wrong = ended.flatMap((one) => (one.status === "rejected" ? [messageOf(one.reason)] : []));
  if (wrong.length > 0) throw new Error(wrong.join("; "));
  return ended.flatMap((one) => (one.status === "fulfilled" ? [one.value] : [])).join("; ");
}

/** Undefined for a file that cannot be loaded; the check of the configuration has said why. */
async function configOf(session: Session): Promise<Config | undefined> {
  const opened = await openConfig(filesOf(session), session.machine, anyDriver()).catch(() => undefined);
  return opened?.config;
}

/** Certificates and keys that this machine uses, each with when it ends. */
function keysOf(config: Config | undefined, state: string, now: number): readonly Look[] {
  const { zookeeper, webapp } = config ?? {};
  const pairs = [
    ["zookeeper-tls", zookeeper?.tls],
    ["webapp.tls", webapp?.tls],
  ] as const;
  const certificates = pairs.flatMap(([place, files]) =>
    files ? [async () => `${place} until ${examineCertificates(place, files, now).toISOString()}`] : [],
  );
  const signing = sliverPaths(state).signingKeys;
  if (!fileExists(signing)) return certificates;
  return [
    ...certificates,
    async () => `signing keys of sliver hosts: ${readSigningKeys(signing).keySet.keys.length}`,
  ];
}

/** The ZooKeeper's ports answer; the web interface's does, too, or is free while no daemon runs. */
function portsOf(config: Config | undefined, isRunning: boolean): readonly Look[] {
  if (config === undefined) return [];
  const servers = config.zookeeper.servers.map(({ host, port }) => async () => {
    await connectsTo(host, port).catch((error: unknown) => {
      throw new Error(
        `ZooKeeper ${host}:${port} does not answer (${messageOf(error)}): start it, open the way to it, or correct zookeeper-servers`,
      );
    });
    return `ZooKeeper ${host}:${port} answers`;
  });
  const { isNamed, listenAddress, port, tls } = config.webapp;
  if (!isNamed || port === 0) return servers;
  const place = `${listenAddress}:${port}`;
  // What listens on every address is reached by any of them.
  const host = listenAddress === "0.0.0.0" ? "127.0.0.1" : listenAddress === "::" ? "::1" : listenAddress;
  const webapp = async () => {
    const closed = await canListen(listenAddress, port).then(
      () => undefined,
      (error: unknown) => messageOf(error),
    );
    // A free port is right before the start, and wrong while the daemon runs: then it did not open it.
    if (closed === undefined && !isRunning) return `webapp ${place} is free`;
    if (closed === undefined)
      throw new Error(
        `webapp ${place} does not answer: restart the daemon without --webapp, or correct webapp`,
      );
    // A Nodeyard with another state folder may listen there. One that wants a certificate of its clients answers nothing else.
    await (tls?.ca == null ? isLive(host, port, tls !== null) : connectsTo(host, port)).catch(() => {
      throw new Error(
        `webapp ${place} cannot be used (${closed}): stop the program that listens there, or name another port in webapp`,
      );
    });
    return `webapp ${place} answers`;
  };
  return [...servers, webapp];
}

async function absent(folder: string): Promise<string> {
  return `${folder} is no folder on this machine, so no builder can run here`;
}

/** The disk of a folder that daemons write to. Rejects when it is nearly full. */
async function disk(folder: string): Promise<string> {
  const { bytes, share } = freeSpace(folder);
  const left = `${Math.floor(bytes / 1024 / 1024)} MiB (${Math.floor(share * 100)} %) free for ${folder}`;
  if (bytes >= MIN_FREE_BYTES && share >= MIN_FREE_SHARE) return left;
  throw new Error(`only ${left}: free disk space, or move the folder`);
}

/** What the process on the state folder says of its own readiness (`/ready`). */
async function daemon(socket: string): Promise<string> {
  if (!isSocket(socket)) throw new Error(`${socket} is no socket: remove it, and restart the daemon`);
  const { status, text } = await askSocket(socket, "/ready").catch((error: unknown) => {
    throw new Error(`nothing answers on ${socket} (${messageOf(error)}): start the daemon, or see its log`);
  });
  if (status === 200) return "ready";
  throw new Error(`the daemon is not ready: ${text.trim()}; see its log`);
}

/**
 * Compares the clock with the tree's, which the server stamps on each new znode. The middle between question and answer is
 * compared: half the round trip is the most by which the result can be wrong.
 */
async function clock({ tree, clock }: OperationHandles): Promise<string> {
  const asked = clock.now();
  const { path, stat } = await tree.create("/nodeyard/doctor-", undefined, {
    // A number of its own, so that two doctors do not meet; ephemeral, so that one that is killed leaves nothing.
    sequential: true,
    ephemeral: true,
  });
  const ahead = (asked + clock.now()) / 2 - stat.ctime;
  await tree.delete(path);
  const seconds = (Math.abs(ahead) / 1_000).toFixed(1);
  const text = `this machine's clock is ${seconds} s ${ahead < 0 ? "behind" : "ahead of"} the tree's`;
  if (Math.abs(ahead) <= MAX_SKEW_MS) return text;
  throw new Error(`${text}: set both by NTP (chronyc tracking)`);
}

/** Launchers of Nodepool count, too: they also serve requests. */
async function launchers({ tree }: OperationHandles): Promise<string> {
  const pools = await registeredPools(tree);
  const hosts = new Set(pools.map(({ hostname }) => hostname));
  if (pools.length > 0) return `${counted(pools.length, "pool")} on ${[...hosts].sort().join(", ")}`;
  throw new Error("no launcher has registered a pool, so every request waits: start one, or see its log");
}

/**
 * Lists the resources of each cloud whose machines carry tags, which proves its address and credentials. Differences with the
 * records are only counted: sweeps judge them.
 */
async function clouds(session: Session, handles: OperationHandles): Promise<string> {
  const drivers = new Drivers(loadModule);
  const { config } = await openConfig(filesOf(session), session.machine, drivers);
  const question = { handles, config, drivers, log: logOf(session), only: undefined };
  const { found, failures } = await surveyLeaks(question);
  const failed = failures.map(({ provider, error }) => `${provider} could not be asked (${error})`);
  if (failed.length > 0) throw new Error(`${failed.join("; ")}: check its credentials and its address`);
  const stranded = found.filter(({ kind }) => kind === "elsewhere" || kind === "left");
  if (stranded.length > 0) {
    const first = stranded[0]!;
    throw new Error(
      `nodes that no launcher can delete: ${stranded.length}; the first is node ${first.node} of ${first.provider}: ${first.why}; see nodeyard leaks`,
    );
  }
  const differences =
    found.length === 0 ? "" : `; ${counted(found.length, "difference")} with the records: nodeyard leaks`;
  return `${counted(config.providers.length, "provider")}${differences}`;
}
