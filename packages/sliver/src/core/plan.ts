import { createHash } from "node:crypto";
import type { Phase, Resource, Rspec, SliverUsage } from "@nodeyard/sliver-protocol";
import type { Limits } from "./limits.ts";
import type { SliverRecord } from "./record.ts";
import type { Sent } from "./traffic.ts";

/** One sliver that a back end finds on the machine, by its own marks; what is not marked is not its business. */
export interface Observed {
  readonly index: number;
  readonly incarnation: number;
  readonly name: string;
  readonly generation: number;
  readonly phase: Exclude<Phase, "absent">;
  /** What the last configure that worked applied. */
  readonly applied?: { readonly digest: string; readonly effective: Rspec };
  /** Absent: it does not run, or nothing of it is counted. */
  readonly sent?: Sent;
  /** Processes that the kernel killed since it was made because its memory was full. Absent: nobody counts. */
  readonly memoryKills?: number;
  /** Absent: it does not run, or nobody counts. */
  readonly usage?: SliverUsage;
}

/** All that a back end needs to make one sliver and to keep it as it should be. */
export interface SliverConfig {
  readonly name: string;
  readonly generation: number;
  readonly incarnation: number;
  /** From 1; users, paths, ids, class ids and rules derive from it alone, never from the name. */
  readonly index: number;
  /** `type base64`, nothing else. */
  readonly keys: readonly string[];
  readonly image?: string;
  readonly initscript: string;
  /** Containers may be run in it. Absent: not. */
  readonly nesting?: boolean;
  /** False: nobody may log in, and no process may run. */
  readonly enabled: boolean;
  readonly effective: Rspec;
  readonly limits: Limits;
  /** Cores it may run on; absent where cores are not handed out. */
  readonly cores?: readonly number[];
  /** Of everything above: equal digests need no configure. */
  readonly digest: string;
}

/** The configuration of one sliver, with its digest. */
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
    ...(record.image === undefined ? {} : { image: record.image }),
    initscript: record.initscript,
    ...(record.nesting === true ? { nesting: true } : {}),
    enabled: effective.enabled > 0,
    effective,
    limits,
    ...(cores === undefined ? {} : { cores }),
  };
  const digest = createHash("sha256").update(JSON.stringify(content)).digest("hex");
  return { ...content, digest };
}

/** Which lendable resources a task gives back and gets more of, against what is applied now. */
export interface Exchange {
  readonly gives: readonly Resource[];
  readonly gets: readonly Resource[];
}

/** The exchange of a task that neither gives nor gets. */
export const NOTHING: Exchange = { gives: [], gets: [] };

/** Compares what is applied with what is to be applied. */
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
 * The incarnations that give back what this one gets more of: a lender's floor is restored, and a revoked loan is
 * applied, before it is used. Other slivers do not wait. Of two that give and get both, neither
 * waits for the other.
 */
export function giversTo(
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

/** The steps of a task, each an operation of the back end. */
export type StepKind = "create" | "configure" | "start" | "stop" | "destroy";

/** What is to be done to one incarnation, in this order. */
export interface Task {
  readonly index: number;
  readonly incarnation: number;
  readonly name: string;
  readonly steps: readonly StepKind[];
  /** Absent for what is only destroyed. */
  readonly config?: SliverConfig;
  /** Incarnations whose own task must have worked before: what they give back is what this one gets. */
  readonly after: readonly number[];
}

/** What a plan is made from. */
export interface PlanInput {
  readonly records: ReadonlyMap<string, SliverRecord>;
  /** Of every sliver that has an index. */
  readonly configs: ReadonlyMap<string, SliverConfig>;
  readonly observed: readonly Observed[];
  /** Nothing is destroyed. */
  readonly safe: boolean;
  /** Resources that can be lent. */
  readonly lendable: readonly Resource[];
}

/**
 * The tasks that bring the machine to what the records say. Decided each time from what is found,
 * so that it does not matter which documents came before and how far they got.
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
    // Another incarnation in its place is removed first; the next plan goes on.
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

/** True when the machine should have this sliver; undefined: as it is. */
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
  const start: StepKind[] = run ? ["start"] : [];
  if (found === undefined) return want === true ? ["create", "configure", ...start] : [];
  if (found.phase === "broken")
    return want === true && !safe ? ["destroy", "create", "configure", ...start] : [];
  const configure: StepKind[] = found.applied?.digest === config.digest ? [] : ["configure"];
  if (found.phase === "running") return run ? configure : [...configure, "stop"];
  return [...configure, ...start];
}
