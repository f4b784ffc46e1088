import type { CounterName, DurationName, LevelName } from "../telemetry/index.ts";
import type { GaugeName } from "./gauges.ts";

const UNITS: Readonly<Record<LevelName, string>> = {
  "builder.exit_code": "",
  "builder.image_size": "_bytes",
  "builder.last_run": "_timestamp_seconds",
};

/** What figures are called on Prometheus' page: `nodeyard_`, the room's part with `_` for dots, and the unit. */
export const promName = {
  counter: (name: CounterName) => `nodeyard_${underscored(name)}_total`,
  duration: (name: DurationName) => `nodeyard_${underscored(name)}_seconds`,
  level: (name: LevelName) => `nodeyard_${underscored(name)}${UNITS[name]}`,
  gauge: (name: GaugeName) => `nodeyard_${name}`,
};

function underscored(name: string): string {
  return name.replaceAll(".", "_");
}
