import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ZooKeeper } from "@nodeyard/zookeeper";
import { SOURCE } from "../../testing/program.ts";
import { cpuMs, peakMemoryMib } from "./process-usage.ts";

const POOLS = "/nodepool/components/pool";
const START_LIMIT_MS = 120_000;
const LOG_KEPT = 20_000;

export interface LauncherProcess extends AsyncDisposable {
  readonly pid: number;
  /** Path of its configuration. */
  readonly config: string;
  /** Where browsers reach it; absent: nowhere. */
  readonly address?: string;
  /** From the start of the process until its pools were registered, in milliseconds. */
  readonly startMs: number;
  /** CPU used so far, in milliseconds. */
  cpuMs(): number;
  /** Peak resident memory so far, in MiB. */
  peakMemoryMib(): number;
  /** The end of its log. */
  log(): string;
  stop(): Promise<void>;
}

/**
 * Starts the launcher as a user does, in a process of its own, and waits until it has registered `pools` pools. `web`: whether it listens
 * for browsers.
 */
export async function startLauncher(
  client: ZooKeeper,
  config: string,
  pools: number,
  { web = false }: { readonly web?: boolean } = {},
): Promise<LauncherProcess> {
  const folder = await mkdtemp(join(tmpdir(), "nodeyard-bench-"));
  await writeFile(join(folder, "nodepool.yaml"), config);
  const before = await registered(client);
  const started = performance.now();
  const args = [
    "--disable-warning=ExperimentalWarning",
    SOURCE,
    // A journal of its own: the default one may belong to a launcher of this machine, and grows from run to run.
    "--state",
    join(folder, "state"),
    "launcher",
    ...(web ? ["--webapp", "127.0.0.1:0"] : ["--no-webapp"]),
    "-c",
    join(folder, "nodepool.yaml"),
  ];
  const profile =
    process.env.BENCH_CPU_PROFILE === undefined
      ? []
      : ["--cpu-prof", `--cpu-prof-dir=${process.env.BENCH_CPU_PROFILE}`];
  const more = (process.env.BENCH_NODE_OPTIONS ?? "").split(" ").filter((option) => option !== "");
  const child = spawn(process.execPath, [...profile, ...more, ...args], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let log = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      log = (log + text).slice(-LOG_KEPT);
      if (process.env.BENCH_LOG !== undefined)
        appendFileSync(join(process.env.BENCH_LOG, `${child.pid}.log`), text);
    });
  const stop = async () => {
    await end(child);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    while ((await registered(client)) < before + pools) {
      if (child.exitCode !== null) throw new Error(`the launcher ended with ${child.exitCode}:\n${log}`);
      if (performance.now() - started > START_LIMIT_MS)
        throw new Error(`no pool after ${START_LIMIT_MS} ms:\n${log}`);
      await sleep(5);
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const pid = child.pid!;
  const address = /"address":"(http:[^"]+)"/.exec(log)?.[1];
  return {
    pid,
    config: join(folder, "nodepool.yaml"),
    ...(address !== undefined && { address }),
    startMs: performance.now() - started,
    cpuMs: () => cpuMs(pid),
    peakMemoryMib: () => peakMemoryMib(pid),
    log: () => log,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function registered(client: ZooKeeper): Promise<number> {
  return (await client.exists(POOLS))?.numChildren ?? 0;
}

/** SIGTERM, and SIGKILL if that does not end it within ten seconds. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  const timer = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await exit;
  clearTimeout(timer);
}
