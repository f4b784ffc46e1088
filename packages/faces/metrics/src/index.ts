export { PrometheusExporter, promName } from "./edge/prometheus.ts";
export {
  backlogGauges,
  builderFigures,
  imageGauges,
  type Limits,
  limitGauges,
  providerGauges,
  standingGauges,
  type TenantFigures,
  tenantGauges,
  waitingGauges,
  workGauges,
} from "./figures.ts";
export { type Figure, type Gauge, type GaugeName, gaugeNames, gaugeOf } from "./gauges.ts";
export { CountHistory, HISTORY_STEP_MS, type HistoryPoint } from "./history.ts";
export { Population } from "./population.ts";
export { type SliverUses, sliverGauges } from "./slivers.ts";
