export { PrometheusExporter, promName } from "./edge/prometheus.ts";
export { statsdServer, UdpSink } from "./edge/udp-sink.ts";
export {
  backlogGauges,
  builderFigures,
  imageGauges,
  type Limits,
  limitGauges,
  providerGauges,
  standingGauges,
  waitingGauges,
  workGauges,
} from "./figures.ts";
export { type Gauge, type GaugeName, gaugeNames, gaugeOf } from "./gauges.ts";
export { CountHistory, HISTORY_STEP_MS, type HistoryPoint } from "./history.ts";
export { Population } from "./population.ts";
export { type SliverUses, sliverGauges } from "./slivers.ts";
export type { StatsdSample } from "./statsd/lines.ts";
export { type LineSink, StatsdReporter } from "./statsd/reporter.ts";
export { gaugeSamples, oldKeys } from "./statsd/samples.ts";
