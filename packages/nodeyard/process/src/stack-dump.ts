import type { Launcher } from "@nodeyard/launcher";
import { type Counters, type LiveWork, type Log, RESTS } from "@nodeyard/telemetry";
import type { Machine } from "@nodeyard/telemetry/machine";
import type { Tree } from "@nodeyard/tree";

/**
 * Where the lines belong, as the old launcher's belonged to `nodepool.stack_dump` (docs/contract/operations.md, "Stack dump").
 */
const BUCKET = "nodeyard.stack_dump";
/** Lines of one kind, at most; how many are left out is said. */
const MOST = 1_000;
/** Requests whose verdicts are logged; a launcher may have thousands, and `nodeyard explain` says more of one. */
const MOST_REQUESTS = 100;

/** What is dumped: a process without a launcher has the rest. */
export interface Dumped {
  readonly machine: Machine;
  readonly tree: Tree;
  readonly counters: Counters;
  readonly log: Log;
  /** Absent in a process that has none. */
  readonly launcher?: Pick<Launcher, "view" | "verdict" | "inspect">;
  /** Other work in progress. */
  readonly live?: () => readonly LiveWork[];
}

/**
 * Logs what a process is doing, for an operator who wonders why nothing moves; at level info, so that it is seen without --debug. It only
 * reads memory, so that it also works in a process whose awaits all hang.
 */
export async function stackDump(of: Dumped): Promise<void> {
  const { machine, tree, counters, launcher } = of;
  const say = (facts: object, text: string) => of.log.info({ bucket: BUCKET, ...facts }, text);
  const { state, epoch, trustedUntil } = tree.session();
  const now = machine.clock.monotonic();
  const trustedMs = Number.isFinite(trustedUntil) ? Math.round(trustedUntil - now) : undefined;
  const all = [...(launcher?.inspect().live ?? []), ...(of.live?.() ?? [])];
  // Work in progress first, because there may be thousands of idle leases.
  const live = [...all.filter(({ step }) => step !== RESTS), ...all.filter(({ step }) => step === RESTS)];
  const calls = tree.underWay();
  say(
    { ...machine.memory(), live: live.length, treeCalls: calls.length, session: { state, epoch, trustedMs } },
    "dump: begins",
  );
  some(live, say, (one) => say(liveFacts(one, now), `dump: ${one.kind} ${one.name}`));
  some(calls, say, ({ what, path, operations, since }) =>
    say({ path, operations, ageMs: Math.round(now - since) }, `dump: tree call ${what}`),
  );
  if (launcher !== undefined) dumpLauncher(launcher, say);
  for (const { name, labels, value } of counters.list()) say({ ...labels, value }, `dump: counter ${name}`);
  const { utilization, delayMs } = await machine.eventLoop();
  say(
    { utilization: Number(utilization.toFixed(3)), delayMs: Number(delayMs.toFixed(1)) },
    "dump: ends; the event loop",
  );
}

type Say = (facts: object, text: string) => void;

/** The first lines of a long list, and how many follow. */
function some<T>(all: readonly T[], say: Say, each: (one: T) => void): void {
  for (const one of all.slice(0, MOST)) each(one);
  if (all.length > MOST) say({ more: all.length - MOST }, "dump: and so on");
}

/** Times are milliseconds until now, or from now. */
function liveFacts({ since, step, stepSince, site, until, locks }: LiveWork, now: number): object {
  return {
    ageMs: Math.round(now - since),
    step,
    stepMs: Math.round(now - stepSince),
    site,
    ...(until !== undefined && {
      [step === RESTS ? "nextLookInMs" : "givenUpInMs"]: Math.round(until - now),
    }),
    ...(locks.length === 0 ? {} : { locks }),
  };
}

/** Sizes of the view, and the requests with their verdicts. */
function dumpLauncher(launcher: NonNullable<Dumped["launcher"]>, say: Say): void {
  const { view } = launcher;
  const { handling, busyNodes, waiting } = launcher.inspect();
  say(
    {
      nodes: view.nodes.byId.size,
      requests: view.requests.byId.size,
      components: view.components.size,
      complete: view.complete,
      handling: handling.length,
      busyNodes: busyNodes.length,
      waiting,
    },
    "dump: the launcher",
  );
  let left = MOST_REQUESTS;
  for (const [id, { record }] of view.requests.byId) {
    if (left-- === 0) break;
    say({ request: id, state: record.state, verdict: launcher.verdict(id) }, "dump: a request");
  }
}
