import { defined } from "@nodeyard/runtime";
import type {
  NodeDocument,
  NodeReport,
  SliverReport,
  SliverSpec,
  SpareReport,
} from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "../core/record.ts";
import { isSpare } from "../core/spares.ts";
import type { Busy } from "../isolation/executor.ts";
import type { Manager } from "./manager.ts";

/**
 * The report on the node and its slivers: what has been applied, what is under way, what failed, what is enforced. Made of memory
 * alone, as of the last sync, so that a call costs the machine nothing. Members are absent where there is nothing to say; NodeReport
 * says what each means.
 */
export function reportOf(manager: Manager): NodeReport {
  const { state, options } = manager;
  const slivers = [...state.records.values()].filter(({ kind }) => kind === "sliver");
  const tried = options.backEnd.trials?.() ?? [];
  const caches = options.backEnd.caches?.() ?? [];
  return {
    node: options.node,
    appliedEpoch: state.minimum.epoch,
    appliedVersion: state.minimum.number,
    ...defined({ writer: state.writer }),
    safeMode: state.safe,
    clockSuspect: manager.clockSuspect,
    keySet: state.keySet?.version ?? 0,
    capacity: { ...options.capacity, slivers: options.machine.highestIndex },
    refused: state.refused,
    slivers: slivers.map((record) => sliverReport(manager, record)),
    ...defined({ trouble: manager.trouble }),
    ...(options.backEnd.counting?.() === true ? { counting: true as const } : {}),
    ...(manager.waitingThreads === 0 ? {} : { waitingThreads: manager.waitingThreads }),
    ...(manager.withheld === undefined ? {} : { withheld: manager.withheld.message }),
    unlisted: unlisted(manager),
    ...(state.spares.length === 0 ? {} : { spares: state.spares.map((one) => spareReport(manager, one)) }),
    ...(manager.killed.length === 0 ? {} : { killed: manager.killed }),
    ...(tried.length === 0 ? {} : { images: tried }),
    ...(caches.length === 0 ? {} : { caches }),
    sequence: manager.sequence,
  };
}

/** The document that would change nothing now. Writers begin with it, so that they change only what they know of. */
export function documentOf(manager: Manager): NodeDocument {
  const { state, options } = manager;
  return {
    node: options.node,
    epoch: state.minimum.epoch,
    version: state.minimum.number,
    ...defined({ writer: state.writer }),
    safeMode: state.safe,
    guarded: true,
    unlisted: unlisted(manager),
    slivers: [...state.records.values()].map(specOf),
    loans: Object.fromEntries(
      [...state.records.values()].flatMap(({ name, local: { loans } }) =>
        loans.length === 0 ? [] : [[name, loans]],
      ),
    ),
  };
}

/** Slivers on the machine that no record names: they are being removed, or in safe mode wait for a complete document. */
function unlisted({ state, observed }: Manager): string[] {
  return observed.filter(({ name }) => !state.records.has(name) && !isSpare(name)).map(({ name }) => name);
}

/** What a spare can become. Its name and number mean nothing outside of this machine. */
function spareReport(manager: Manager, { image, nesting, local }: SliverRecord): SpareReport {
  const found = manager.observed.find(({ incarnation }) => incarnation === local.incarnation);
  return {
    phase: found?.phase ?? "absent",
    ...defined({ image }),
    ...(nesting === true ? { nesting } : {}),
  };
}

/** The record as a spec, without loans: a document does not list them, and existing ones are kept. Held slivers have no `expiresAt`. */
function specOf(record: SliverRecord): SliverSpec {
  const { name, generation, instantiation, initscript, expiresAt, image, devices, caches, volumes } = record;
  return structuredClone({
    ...{ name, generation, instantiation, initscript },
    held: record.held === true,
    ...defined({ expiresAt, image, devices, caches, volumes }),
    ...(record.nesting === true ? { nesting: true } : {}),
    keys: record.keys,
    delegations: record.delegations,
    rspec: record.rspec,
    tags: record.tags,
  }) as SliverSpec;
}

/** The launcher waits for `settled` and not for a phase: a sliver can run with keys or limits of before. */
function sliverReport(manager: Manager, record: SliverRecord): SliverReport {
  const { incarnation, index } = record.local;
  const found = manager.observed.find((one) => one.incarnation === incarnation);
  const doing = manager.busy.get(incarnation)?.step;
  const error = manager.failures.text(incarnation) ?? placeError(manager, record.name);
  const missing = manager.result?.missingCores.get(record.name);
  return {
    name: record.name,
    generation: record.generation,
    incarnation,
    ...defined({ index }),
    // A spare runs before it has this sliver's keys and limits.
    phase: found === undefined ? "absent" : isSpare(found.name) ? "created" : found.phase,
    ...(record.held === true ? { held: true } : {}),
    ...defined({ doing, error }),
    unenforced: [
      ...manager.unenforced(incarnation),
      ...(missing === undefined ? [] : [`cores: ${missing} of the requested ones are not free`]),
    ],
    ...defined({ devices: record.devices }),
    rspec: record.rspec,
    effective: manager.result?.effective.get(record.name) ?? record.rspec,
    loans: manager.result?.loanStatuses.get(record.name) ?? [],
    ...((found?.memoryKills ?? 0) > 0 ? { memoryKills: found!.memoryKills! } : {}),
    ...defined({
      triedVersion: found?.triedVersion,
      usage: found?.usage,
      volumes: found?.volumes ?? record.volumes,
    }),
    ...throttledText(manager, record.name),
    settled: manager.isDone(incarnation, manager.revision),
    tags: record.tags ?? {},
    ...loginOf(manager, index),
  };
}

/** Present while the sliver sends more slowly because its traffic of the day is nearly used up. */
function throttledText({ result }: Manager, name: string): Pick<SliverReport, "throttled"> {
  const ceil = result?.throttled.get(name);
  if (ceil === undefined) return {};
  const rate =
    ceil < 1_000_000 ? `${Math.round(ceil / 1000)} kbit/s` : `${Math.round(ceil / 1_000_000)} Mbit/s`;
  return { throttled: `its traffic of the day is nearly used up (netDay): it sends ${rate} at most` };
}

/** Every sliver has an address of its own, so its SSH server listens on the usual port. */
function loginOf(manager: Manager, index: number | undefined): Pick<SliverReport, "login"> {
  if (index === undefined) return {};
  const { user, address, published } = manager.options.backEnd.account(index);
  if (address === undefined) return {};
  return { login: { user, address, port: 22, ...defined({ published }) } };
}

/** No task fails for a sliver without a place, so the reason is given here. `attempts` 0: nothing was tried. */
function placeError(manager: Manager, name: string): SliverReport["error"] {
  if (!manager.result?.unplaced.includes(name)) return undefined;
  const message = `every place up to ${manager.options.machine.highestIndex} is taken, or this machine no longer has its devices`;
  return { code: "sliver.no_place", message, attempts: 0 };
}

/** Most slivers that are listed one by one. */
const MOST = 500;

/**
 * What the manager is doing, line by line, for an operator who asks why nothing happens. It reads only memory, so it works even when every
 * step hangs. `now`: monotonic milliseconds.
 */
export function dumpOf(manager: Manager, now: number): readonly string[] {
  const { state, options, busy, trouble } = manager;
  const { epoch, number } = state.minimum;
  const slivers = [...state.records.values()];
  const failing = slivers.flatMap(({ name, local: { incarnation } }) => {
    const failure = manager.failures.text(incarnation);
    return failure === undefined ? [] : [`dump: sliver ${name} fails: ${JSON.stringify(failure)}`];
  });
  const remains = options.backEnd.remains?.() ?? [];
  return [
    `dump: node ${options.node} at epoch ${epoch}, version ${number}, look ${manager.sequence}: ${slivers.length} slivers, ${busy.size} busy` +
      `${state.safe ? ", safe mode" : ""}${manager.clockSuspect ? ", the clock is suspect" : ""}`,
    ...(trouble === undefined
      ? []
      : [`dump: cannot inspect the machine: ${trouble.message} (${trouble.attempts} tries)`]),
    ...[...busy.values()].slice(0, MOST).map((one) => busyLine(one, now)),
    ...failing.slice(0, MOST),
    ...(manager.waitingThreads === 0
      ? []
      : [`dump: ${manager.waitingThreads} operations on files have waited for more than half a minute`]),
    ...(remains.length === 0
      ? []
      : [`dump: ${remains.length} things of the machine are not right yet: ${remains[0]}`]),
    "dump: ends",
  ];
}

/** One line about a task: how long it runs, in which step, and when the step is given up. */
function busyLine({ task, step, since, stepSince, until }: Busy, now: number): string {
  const after = task.after.length === 0 ? "" : `, after incarnations ${task.after.join(" ")}`;
  const end = until === undefined ? "" : `, given up in ${seconds(until - now)}`;
  return (
    `dump: task of ${task.name}, incarnation ${task.incarnation}, for ${seconds(now - since)}: ` +
    `${step} (of ${task.steps.join(" ")}) for ${seconds(now - stepSince)}${end}${after}`
  );
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}
