#!/usr/bin/env -S node --disable-warning=ExperimentalWarning --max-semi-space-size=2
import { readFileSync, writeSync } from "node:fs";
import { hostname } from "node:os";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { deadline, NodeyardError, openTraces, serviceReporter, systemClock } from "@nodeyard/runtime";
import manifest from "../../package.json" with { type: "json" };
import { memoryOfSlivers } from "../core/capacity.ts";
import { type DaemonConfig, parseConfig } from "../daemon/config.ts";
import { atSliver, VERBS, type Verb } from "../daemon/edge/at-sliver.ts";
import { dismantle, dismantling } from "../daemon/edge/dismantle.ts";
import { linkOf, totalMemory } from "../daemon/edge/facts.ts";
import { forgetWriter } from "../daemon/edge/forget-writer.ts";
import { ownId } from "../daemon/edge/own-id.ts";
import { type BackEnds, startDaemon } from "../daemon/edge/start.ts";
import { DaemonConfigError, MachineError } from "../errors.ts";
import { LxcBackEnd } from "../isolation/lxc/edge/lxc-back-end.ts";
import { keptNetwork, SliverMachine } from "../isolation/lxc/edge/machine.ts";
import { dumpOf } from "../manager/report.ts";
import { USAGES, usageText } from "../usage.ts";

const USAGE = usageText(USAGES.sliverd);

/** Of parseArgs. Their meaning is in usage.ts, from which the usage and the reference page are made. */
const OPTIONS = {
  config: { type: "string" },
  dismantle: { type: "boolean" },
  "forget-writer": { type: "boolean" },
  exec: { type: "string" },
  freeze: { type: "string" },
  thaw: { type: "string" },
  snapshot: { type: "string" },
  "forget-snapshot": { type: "string" },
  "dry-run": { type: "boolean" },
  json: { type: "boolean" },
} as const;

const READER = fileURLToPath(new URL("./sliver-reader.ts", import.meta.url));
/** Node id for --dismantle, which needs none. So it also works when the stored id cannot be read. */
const NAMELESS = "nameless";
/** Time limit for ending all slivers and removing everything, milliseconds. */
const DISMANTLE_LIMIT = 1_800_000;

/** Exit codes: 0 stopped by a signal; 1 could not start or continue; 2 wrong usage. */
async function main(args: readonly string[]): Promise<number> {
  if (args[0] === "--version") return say(`sliverd ${manifest.version}\n`);
  if (args[0] === "--help") return say(USAGE);
  const options = read(args);
  if (options?.config === undefined || !makesSense(options)) {
    log(USAGE);
    return 2;
  }
  const verb = verbOf(options);
  const nameOf = options.dismantle || verb !== undefined ? () => NAMELESS : ownId;
  const config = parseConfig(configText(options.config), options.config, nameOf);
  if (verb !== undefined) return atSliver(verb, config, options[verb]!, options.words);
  if (options.dismantle) return takeAway(config, options["dry-run"] === true, options.json === true);
  if (options["forget-writer"]) return say(`${await forgetWriter(config, options["dry-run"] === true)}\n`);
  const report = serviceReporter(process.env);
  const stopped = new Promise<string>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve(signal));
  });
  const line = (level: string) => (text: string) => log(`${level} ${text}\n`);
  const { version } = manifest;
  const traces = await openTraces(process.env, { name: "sliverd", version, hostname: hostname() });
  const logs = { info: line("info"), error: line("error") };
  const daemon = await startDaemon(config, backEnds(logs.info), logs, READER, traces?.emit);
  process.on("SIGUSR2", () => {
    for (const text of dumpOf(daemon.manager, systemClock.monotonic())) log(`info ${text}\n`);
  });
  process.on("SIGHUP", () =>
    log(`info SIGHUP: ${options.config} is read at the start only; restart sliverd, slivers keep running\n`),
  );
  log(`info sliverd ${version} on node ${config.node}, back end ${config.backEnd}\n`);
  report("ready");
  // Background timers do not keep the process alive, so this one does until the daemon is stopped.
  const alive = setInterval(() => undefined, 3_600_000);
  log(`info ${await stopped}: stopping; slivers keep running\n`);
  report("stopping");
  clearInterval(alive);
  await daemon.close();
  await traces?.close();
  return 0;
}

/** Throws DaemonConfigError, whose message says what to do. */
function configText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new DaemonConfigError(
      `${path} cannot be read (${code}): name the file with this machine's configuration`,
      {
        cause,
      },
    );
  }
}

type Options = NonNullable<ReturnType<typeof read>>;

/** The options; undefined when they cannot be understood, which prints the usage. */
function read(args: readonly string[]) {
  try {
    const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
    return { ...values, words: positionals };
  } catch {
    return undefined;
  }
}

/** The command for one sliver or image, if any; `makesSense` has refused two. */
function verbOf(options: Options): Verb | undefined {
  return VERBS.find((verb) => options[verb] !== undefined);
}

/** Whether the options fit together: one verb at most, `--dry-run` and `--json` only where they mean something. */
function makesSense({
  dismantle,
  "forget-writer": forget,
  "dry-run": dryRun,
  json,
  ...rest
}: Options): boolean {
  const { words } = rest;
  const verbs = VERBS.filter((verb) => rest[verb] !== undefined);
  if (verbs.includes("snapshot") && words.length !== 1) return false;
  if (verbs.length > 0) return verbs.length === 1 && !(dismantle || forget || dryRun || json);
  if (words.length > 0) return false;
  if (dismantle) return forget !== true;
  return json !== true && (forget === true || dryRun !== true);
}

/** Removes everything that slivers need from this machine, or says what it would remove. May be repeated after a failure. */
async function takeAway(config: DaemonConfig, dryRun: boolean, json: boolean): Promise<number> {
  using limit = deadline(
    systemClock,
    DISMANTLE_LIMIT,
    () => new MachineError("it took more than 30 minutes"),
  );
  // Firewall rules of existing slivers use the addresses that are recorded, which may differ from the configured ones.
  const network = (await keptNetwork(config.isolation.folder)) ?? config.isolation.network;
  const isolation = { ...config.isolation, network };
  const machine = machineOf({ ...config, isolation }, (text) => log(`info ${text}\n`));
  const { remove, keep } = await dismantling(config, machine, limit.signal);
  if (!dryRun) await dismantle(config, machine, limit.signal);
  if (json) return say(`${JSON.stringify({ v: 1, done: !dryRun, remove, keep })}\n`);
  const verb = dryRun ? "would remove" : "removed";
  const lines = remove.map(({ kind, name }) => `${verb} ${kind} ${name}`);
  return say(`${[...lines, ...keep.map((line) => `stays: ${line}`)].join("\n")}\n`);
}

/** Memory in bytes for all slivers together, so that they leave the host its own. */
function machineOf(config: DaemonConfig, onProgress: (text: string) => void): SliverMachine {
  const memory = 1024 * memoryOfSlivers(totalMemory());
  const link = linkOf(config);
  return new SliverMachine({ ...config.isolation, link, memory, clock: systemClock, onProgress });
}

function backEnds(info: (text: string) => void): BackEnds {
  const lxc = (name: "account" | "container") => (config: DaemonConfig) =>
    new LxcBackEnd(name, machineOf(config, info));
  // A module that Node loads before this program may add others: tests have one whose slivers are in memory.
  const { [Symbol.for("nodeyard.sliver.backEnds")]: added } = globalThis as { [key: symbol]: BackEnds };
  return { account: lxc("account"), container: lxc("container"), ...added };
}

/** Writes the answer of a command, at once: `process.exit` would lose what is still buffered. Returns exit code 0. */
function say(text: string): number {
  writeSync(1, text);
  return 0;
}

/** Writes to standard error. Errors are ignored: a closed pipe or a full disk must not end a daemon with slivers. */
function log(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // There is no other place for a report.
  }
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  // An expected error is one line; anything else is a bug, which needs its stack.
  const known = error instanceof NodeyardError || (error as NodeJS.ErrnoException).code !== undefined;
  log(`error ${known ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(1);
}
