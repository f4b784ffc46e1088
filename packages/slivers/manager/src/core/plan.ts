import { createHash } from "node:crypto";
import { defined } from "@nodeyard/runtime";
import type { Phase, Resource, Rspec, SliverUsage, VolumeReport } from "@nodeyard/sliver-protocol";
import type { Limits } from "./limits.ts";
import type { SliverRecord } from "./record.ts";
import type { Sent } from "./traffic.ts";

/** A sliver that a back end finds on the machine by its marks. The back end ignores everything without marks. */
export interface Observed {
  readonly index: number;
  readonly incarnation: number;
  readonly name: string;
  readonly generation: number;
  readonly phase: Exclude<Phase, "absent">;
  /** The state that the last successful configure applied. */
  readonly applied?: { readonly digest: string; readonly effective: Rspec };
  /** Absent: it does not run, or traffic is not measured. */
  readonly sent?: Sent;
  /** Devices that nobody else may have as long as it is there. */
  readonly devices?: readonly string[];
  /** Absent: it has none. */
  readonly volumes?: readonly VolumeReport[];
  /** Processes that the kernel killed since it was made because its memory was full. Absent: not measured. */
  readonly memoryKills?: number;
  /** The version of its image, if that was on trial when it was made. */
  readonly triedVersion?: string;
  /** Absent: it does not run, or usage is not measured. */
  readonly usage?: SliverUsage;
  /** A spare whose image is no longer the one of that name. */
  readonly outdated?: boolean;
}

/** Everything that a back end needs to make and configure a sliver. */
export interface SliverConfig
  extends Pick<
    SliverRecord,
    "name" | "generation" | "keys" | "image" | "initscript" | "nesting" | "caches" | "volumes" | "held"
  > {
  readonly incarnation: number;
  /** From 1. Users, paths, ids, class ids and rules are derived from it alone, never from the name (rule 11). */
  readonly index: number;
  /** Files of its devices, those of one device separated by blanks. Absent: none. */
  readonly devices?: readonly string[];
  /** False: no login is possible and no process may run. */
  readonly enabled: boolean;
  readonly effective: Rspec;
  readonly limits: Limits;
  /** Cores on which it may run; absent when cores are not assigned. */
  readonly cores?: readonly number[];
  /** Digest of all of the above. With an equal digest no configure is needed. */
  readonly digest: string;
}

/** The configuration of a sliver, with its digest. */
export function configOf(
  record: SliverRecord,
  index: number,
  effective: Rspec,
  limits: Limits,
  cores: readonly number[] | undefined,
): SliverConfig {
  const content = {
    name: record.name,
    generation: record.generation,
    incarnation: record.local.incarnation,
    index,
    keys: record.keys,
    ...defined({ image: record.image }),
    initscript: record.initscript,
    ...(record.nesting === true ? { nesting: true } : {}),
    ...defined({ devices: record.local.devices, caches: record.caches, volumes: record.volumes }),
    enabled: effective.enabled > 0,
    ...(record.held === true ? { held: true } : {}),
    effective,
    limits,
    ...defined({ cores }),
  };
  const digest = createHash("sha256").update(JSON.stringify(content)).digest("hex");
  return { ...content, digest };
}

/** The lendable resources of which a task applies less (gives) or more (gets) than before. */
export interface Exchange {
  readonly gives: readonly Resource[];
  readonly gets: readonly Resource[];
}

/** The exchange of a task that neither gives nor gets. */
export const NOTHING: Exchange = { gives: [], gets: [] };

/** Compares the applied rspec with the one to apply. */
export function exchangeOf(
  found: Observed | undefined,
  { effective }: SliverConfig,
  lendable: readonly Resource[],
): Exchange {
  const before = found?.applied?.effective;
  return {
    gives: lendable.filter((name) => before !== undefined && effective[name] < before[name]),
    gets: lendable.filter((name) => effective[name] > (before?.[name] ?? 0)),
  };
}

/**
 * The incarnations that must give back what this one gets: a lender's floor is restored and a revoked loan is applied before the amount is
 * used elsewhere. Other slivers do not wait. Of two tasks that both give and get, neither waits for the other.
 */
function giversTo(
  exchange: Exchange,
  tasks: readonly { readonly incarnation: number; readonly exchange: Exchange }[],
): number[] {
  return tasks
    .filter((one) => rank(one.exchange) < rank(exchange))
    .filter((one) => one.exchange.gives.some((name) => exchange.gets.includes(name)))
    .map(({ incarnation }) => incarnation);
}

function rank({ gives, gets }: Exchange): number {
  if (gives.length === 0) return 2;
  return gets.length === 0 ? 0 : 1;
}

/** A step of a task: an operation of the back end. */
export type StepKind = "create" | "configure" | "start" | "stop" | "destroy";

/** The steps for one incarnation, in order. */
export interface Task {
  readonly index: number;
  readonly incarnation: number;
  readonly name: string;
  readonly steps: readonly StepKind[];
  /** Absent when the sliver is only destroyed. */
  readonly config?: SliverConfig;
  /** Incarnations whose tasks must succeed first, because this task gets what they give back. */
  readonly after: readonly number[];
}

/** Input of a plan. */
export interface PlanInput {
  readonly records: ReadonlyMap<string, SliverRecord>;
  /** Configurations of every sliver with an index. */
  readonly configs: ReadonlyMap<string, SliverConfig>;
  readonly observed: readonly Observed[];
  /** True after a lost store: nothing is destroyed. */
  readonly safe: boolean;
  /** Resources that can be lent. */
  readonly lendable: readonly Resource[];
}

/**
 * The tasks that bring the machine to the state of the records. They depend on what is found on the machine, so it does not matter which
 * documents came before and how much of them was applied.
 */
export function plan(input: PlanInput): Task[] {
  const { records, configs, observed, safe } = input;
  const owner = new Map<number, SliverRecord>();
  for (const record of records.values())
    if (record.local.index !== undefined) owner.set(record.local.index, record);
  const tasks: Draft[] = [];
  for (const found of observed) {
    const record = owner.get(found.index);
    const ours = record?.local.incarnation === found.incarnation;
    if ((!ours || wanted(record) === false) && !safe) tasks.push(removal(found));
  }
  const byIndex = new Map(observed.map((one) => [one.index, one]));
  for (const [index, record] of owner) {
    const config = configs.get(record.name);
    const found = byIndex.get(index);
    // The place has another incarnation: it is removed first, and the next plan continues.
    if (config === undefined || (found !== undefined && found.incarnation !== config.incarnation)) continue;
    const steps = stepsFor(record, config, found, safe);
    if (steps.length === 0) continue;
    const { incarnation, name } = config;
    const exchange = exchangeOf(found, config, input.lendable);
    tasks.push({ index, incarnation, name, steps, config, exchange });
  }
  return tasks.map(({ exchange, ...task }) => ({ ...task, after: giversTo(exchange, tasks) }));
}

type Draft = Omit<Task, "after"> & { readonly exchange: Exchange };

function removal({ index, incarnation, name }: Observed): Draft {
  return { index, incarnation, name, steps: ["destroy"], exchange: NOTHING };
}

/** Whether the machine should have this sliver; undefined: it stays as it is. */
export function wanted({ kind, instantiation, local }: SliverRecord): boolean | undefined {
  if (kind === "controller") return false;
  if (instantiation === "plc-instantiated") return true;
  return instantiation === "delegated" ? local.desired : undefined;
}

function stepsFor(
  record: SliverRecord,
  config: SliverConfig,
  found: Observed | undefined,
  safe: boolean,
): StepKind[] {
  const want = wanted(record);
  if (want === false) return [];
  const run = config.enabled && record.local.stopped !== true;
  // A held sliver that runs is suspended by configure. One that does not run, as after a reboot, would do work before it is.
  const start: StepKind[] = run && config.held !== true ? ["start"] : [];
  if (found === undefined) return want === true ? ["create", "configure", ...start] : [];
  if (found.phase === "broken")
    return want === true && !safe ? ["destroy", "create", "configure", ...start] : [];
  const configure: StepKind[] = found.applied?.digest === config.digest ? [] : ["configure"];
  if (found.phase === "running") return run ? configure : [...configure, "stop"];
  return [...configure, ...start];
}
