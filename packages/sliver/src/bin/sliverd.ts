#!/usr/bin/env -S node --disable-warning=ExperimentalWarning
import { readFileSync, writeSync } from "node:fs";
import { NodeyardError, systemClock } from "@nodeyard/runtime";
import manifest from "../../package.json" with { type: "json" };
import { type BackEnds, type DaemonConfig, parseConfig, startDaemon } from "../daemon/index.ts";
import { LxcBackEnd, SliverMachine } from "../isolation/index.ts";
import { MemoryBackEnd } from "../testing/index.ts";

const USAGE = `usage: sliverd --config FILE     run the sliver manager
       sliverd --version
`;

/** 0: stopped as asked; 1: it could not start or go on; 2: it was called wrongly. */
async function main(args: readonly string[]): Promise<number> {
  if (args[0] === "--version") return say(`sliverd ${manifest.version}\n`);
  if (args[0] === "--help") return say(USAGE);
  if (args[0] !== "--config" || args[1] === undefined || args.length !== 2) {
    log(USAGE);
    return 2;
  }
  const config = parseConfig(readFileSync(args[1], "utf8"), args[1]);
  const stopped = new Promise<string>((resolve) => {
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.once(signal, () => resolve(signal));
  });
  const line = (level: string) => (text: string) => log(`${level} ${text}\n`);
  const daemon = await startDaemon(config, backEnds(line("info")), {
    info: line("info"),
    error: line("error"),
  });
  log(`info sliverd ${manifest.version} on node ${config.node}, back end ${config.backEnd}\n`);
  // The loop's timers do not keep a process; the daemon is one until it is told otherwise.
  const alive = setInterval(() => undefined, 3_600_000);
  log(`info ${await stopped}: stopping; slivers go on\n`);
  clearInterval(alive);
  await daemon.close();
  return 0;
}

function backEnds(info: (text: string) => void): BackEnds {
  const lxc =
    (name: "account" | "container") =>
    ({ isolation, machine }: DaemonConfig) =>
      new LxcBackEnd(
        name,
        new SliverMachine({ ...isolation, link: machine.link, clock: systemClock, onProgress: info }),
      );
  const real = { account: lxc("account"), container: lxc("container") };
  // A machine in memory forgets its slivers with the process: for tests, and nobody gets it by accident.
  if (process.env.NODEYARD_SLIVER_TESTING !== "1") return real;
  const uid = process.getuid!();
  return { ...real, memory: () => new MemoryBackEnd(uid === 0 ? undefined : uid) };
}

function say(text: string): number {
  writeSync(1, text);
  return 0;
}

function log(text: string): void {
  writeSync(2, text);
}

try {
  process.exit(await main(process.argv.slice(2)));
} catch (error) {
  const known = error instanceof NodeyardError || (error as NodeJS.ErrnoException).code !== undefined;
  log(`error ${known ? (error as Error).message : (error as Error).stack}\n`);
  process.exit(1);
}
