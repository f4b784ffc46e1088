import type { NodeReport, SliverReport } from "@nodeyard/sliver-protocol";
import type { SliverRecord } from "../core/index.ts";
import type { Manager } from "./manager.ts";

/** Node and slivers as they are: what was applied, what goes on, what failed, what is enforced. */
export function reportOf(manager: Manager): NodeReport {
  const { state, options } = manager;
  const slivers = [...state.records.values()].filter(({ kind }) => kind === "sliver");
  return {
    node: options.node,
    appliedEpoch: state.minimum.epoch,
    appliedVersion: state.minimum.number,
    safeMode: state.safe,
    clockSuspect: manager.clockSuspect,
    keySet: state.keySet?.version ?? 0,
    capacity: { ...options.capacity },
    refused: state.refused,
    slivers: slivers.map((record) => sliverReport(manager, record)),
  };
}

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
    ...(index === undefined ? {} : { index }),
    phase: found?.phase ?? "absent",
    ...(doing === undefined ? {} : { doing }),
    ...(error === undefined ? {} : { error }),
    unenforced: [
      ...manager.unenforced(incarnation),
      ...(missing === undefined ? [] : [`cores: ${missing} of those wanted are not free`]),
    ],
    effective: manager.result?.effective.get(record.name) ?? record.rspec,
    loans: manager.result?.verdicts.get(record.name) ?? [],
  };
}

function placeError(manager: Manager, name: string): SliverReport["error"] {
  if (!manager.result?.unplaced.includes(name)) return undefined;
  const message = `every place up to ${manager.options.machine.highestIndex} is taken`;
  return { code: "sliver.no_place", message, attempts: 0 };
}
