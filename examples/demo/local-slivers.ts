import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { promisify } from "node:util";
import { SLIVERD_FLAGS } from "@nodeyard/process";
import { backoff, deadline, messageOf, NodeyardError, sleep } from "@nodeyard/runtime";
import {
  createSigningKeys,
  DocumentWriter,
  type NodeReport,
  type SigningKeys,
  SliverClient,
  SliverUnreachableError,
  signerOf,
  unixTransport,
} from "@nodeyard/sliver-protocol";
import type { Machine } from "@nodeyard/telemetry/machine";
import { backEndOf, NODE, PLACES, type SliverFacts, sliverdConfig } from "./sliver-plan.ts";

const run = promisify(execFile);
/** Milliseconds. */
const UP_MS = 20_000;
const PROBE_MS = 60_000;
const AWAY_MS = 120_000;
/** As the driver calls itself: this machine remains its own when the probe has ended. */
const WRITER = "driver-sliver";

/**
 * `$1` is the folder, `$2` the configuration, the rest the program. The shell waits until its input ends, which the system causes also for
 * a killed process; then no sliver is left on the machine. A manager that another start began keeps its lock, and so its files.
 */
const GUARD = `
folder=$1 config=$2
shift 2
"$@" --config "$config" &
daemon=$!
cat >/dev/null
kill "$daemon" 2>/dev/null
wait "$daemon"
"$@" --dismantle --config "$config" && rm -rf "$folder"
`;

/** The sliver manager of this machine, and what a provider needs of it. */
export interface LocalSlivers {
  readonly node: string;
  readonly socket: string;
  readonly signingKeys: string;
  readonly backEnd: "account" | "container";
  /** Resolves when nothing of slivers is on the machine; rejects with what could not be removed. */
  stop(): Promise<void>;
}

/**
 * Starts `sliverd`, and checks with one sliver that this machine can make them. First removes what an earlier start left. Rejects with
 * NodeyardError, with the machine as it was.
 */
export async function startLocalSlivers(facts: SliverFacts, machine: Machine): Promise<LocalSlivers> {
  const program = [process.execPath, ...SLIVERD_FLAGS, facts.sliverd];
  await takeLeftovers(program);
  mkdirSync(PLACES.folder, { mode: 0o711 });
  const keys = createSigningKeys(PLACES.keys);
  writeFileSync(PLACES.config, JSON.stringify(sliverdConfig(facts, keys.keySet)), { mode: 0o600 });
  const log = openSync(PLACES.log, "a", 0o600);
  const words = ["-c", GUARD, "sh", PLACES.folder, PLACES.config, ...program];
  // A process group of its own: Ctrl-C first ends the users of the slivers, then this.
  const guard = spawn("/bin/sh", words, { stdio: ["pipe", log, log], detached: true });
  closeSync(log);
  guard.stdin!.on("error", () => {});
  try {
    const client = new SliverClient(unixTransport(PLACES.socket));
    await answering(client, guard, machine);
    await prove(client, keys, machine);
  } catch (error) {
    const why = complaint() ?? messageOf(error);
    const left = await stop(guard, machine).then(
      () => [],
      (failure) => [messageOf(failure)],
    );
    throw new NodeyardError("demo.no_slivers", [why, ...left].join("; and "), { cause: error });
  }
  return {
    node: NODE,
    socket: PLACES.socket,
    signingKeys: PLACES.keys,
    backEnd: backEndOf(facts),
    stop: () => stop(guard, machine),
  };
}

/** From a start that was killed together with its guard, or that still runs. */
async function takeLeftovers(program: readonly string[]): Promise<void> {
  if (!existsSync(PLACES.folder)) return;
  const [node, ...words] = program;
  try {
    if (existsSync(PLACES.config))
      await run(node!, [...words, "--dismantle", "--config", PLACES.config], { timeout: AWAY_MS });
    rmSync(PLACES.folder, { recursive: true, force: true });
  } catch (error) {
    const why =
      /error (.*)/.exec(String((error as { stderr?: unknown }).stderr ?? ""))?.[1] ?? messageOf(error);
    throw new NodeyardError("demo.no_slivers", `cannot remove what an earlier start left: ${why}`, {
      cause: error,
    });
  }
}

async function answering(client: SliverClient, guard: ChildProcess, machine: Machine): Promise<void> {
  const { clock, random } = machine;
  const late = () => new NodeyardError("demo.no_slivers", `sliverd does not answer after ${UP_MS / 1000} s`);
  const limit = deadline(clock, UP_MS, late);
  try {
    for (let attempt = 0; ; attempt++) {
      const report = await client.status(limit.signal).catch((error: unknown) => {
        if (error instanceof SliverUnreachableError && guard.exitCode === null) return undefined;
        throw error;
      });
      if (report !== undefined) return;
      const said = complaint();
      if (said !== undefined) throw new NodeyardError("demo.no_slivers", said);
      await sleep(clock, backoff(random, attempt, 50, 500), limit.signal);
    }
  } finally {
    limit.cancel();
  }
}

/** One sliver, made and removed: only that shows what the kernel permits. */
async function prove(client: SliverClient, keys: SigningKeys, { clock, random }: Machine): Promise<void> {
  const late = () => new NodeyardError("demo.no_slivers", `no sliver started within ${PROBE_MS / 1000} s`);
  const limit = deadline(clock, PROBE_MS, late);
  const writer = new DocumentWriter({
    client,
    signer: signerOf(keys),
    node: NODE,
    writer: WRITER,
    epoch: 1,
    now: () => clock.now(),
    wait: (attempt, signal) => sleep(clock, backoff(random, attempt, 50, 500), signal),
    limit: () => deadline(clock, PROBE_MS, late),
  });
  const probe = {
    name: "probe",
    generation: 0,
    instantiation: "plc-instantiated",
    rspec: { disk: 65_536 },
  } as const;
  try {
    let report = await writer.change((slivers) => void slivers.set(probe.name, probe), limit.signal);
    while (!isUp(report)) report = await client.watch(report.sequence, limit.signal);
    report = await writer.change((slivers) => void slivers.delete(probe.name), limit.signal);
    while (report.unlisted.length > 0) report = await client.watch(report.sequence, limit.signal);
  } finally {
    limit.cancel();
  }

  function isUp({ slivers, refused, trouble }: NodeReport): boolean {
    const sliver = slivers.find(({ name }) => name === probe.name);
    const why = sliver?.error?.message ?? refused[0]?.reason ?? trouble?.message;
    if (why !== undefined) throw new NodeyardError("demo.no_slivers", why);
    return sliver?.phase === "running";
  }
}

/** Ends the guard's input and waits for its clean-up. */
async function stop(guard: ChildProcess, { clock }: Machine): Promise<void> {
  const late = () => new NodeyardError("demo.slivers_left", `slivers are not gone after ${AWAY_MS / 1000} s`);
  const limit = deadline(clock, AWAY_MS, late);
  try {
    await new Promise<void>((resolve, reject) => {
      if (guard.exitCode !== null || guard.signalCode !== null) resolve();
      guard.once("exit", () => resolve());
      limit.signal.addEventListener("abort", () => reject(limit.signal.reason));
      guard.stdin!.end();
    });
  } finally {
    limit.cancel();
  }
  if (!existsSync(PLACES.folder)) return;
  throw new NodeyardError(
    "demo.slivers_left",
    `cannot remove the slivers of this machine (${complaint() ?? `see ${PLACES.log}`}); the next start tries again`,
  );
}

/** The last error that the manager reported. */
function complaint(): string | undefined {
  const text = existsSync(PLACES.log) ? readFileSync(PLACES.log, "utf8") : "";
  return [...text.matchAll(/^error (.*)$/gm)].at(-1)?.[1];
}
