import type { Resource } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "../record.ts";
import { wanted } from "./assign.ts";
import type { SliverConfig } from "./config.ts";
import { type Exchange, exchangeOf, giversTo, NOTHING } from "./exchange.ts";
import type { Observed } from "./observed.ts";

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
 * What brings the machine to what the records say; nothing when it is there. Decided anew from what is found each time,
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
